import { z } from 'zod'
import { fixed } from '../../lib/db/index.ts'
import { access, HttpError, params, route, sendJson } from '../../lib/http/index.ts'
import { CrPath } from '../../lib/seccomp/index.ts'

const ABSENT = 'There is no such resource.'

const remove = fixed<{ found: boolean }[]>(
  'delete from seccomp_cr where namespace = $1::text and name = $2::text returning true as found',
)

/** DELETE /seccomp/crs/{namespace}/{name}: removes a mirrored resource (docs/contract.md#seccomp-distribution). */
export default route({
  summary: 'Remove a mirrored seccomp resource',
  answer: z.strictObject({ deleted: z.literal(true) }),
  also: { 404: ABSENT },
}).delete('/seccomp/crs/:namespace/:name', access('ingest'), params(CrPath), async (c) => {
  const { namespace, name } = c.req.valid('param')
  let wasLost = false
  const deleted = await c.get('deps').db.ingest((sql, isOutcomeUnknown) => {
    wasLost ||= isOutcomeUnknown
    return remove(sql, namespace, name)
  })
  // If the answer of the first attempt was lost, that attempt has most likely deleted it.
  if (deleted.length === 0 && !wasLost) throw new HttpError(404, ABSENT)
  return sendJson(c, '{"deleted":true}')
})
