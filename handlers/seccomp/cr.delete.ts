import { z } from 'zod'
import { fixed } from '../../lib/db/index.ts'
import { access, HttpError, params, route, sendJson } from '../../lib/http/index.ts'
import { CrPath } from '../../lib/seccomp/index.ts'

const ABSENT = 'There is no such resource.'

const remove = fixed<{ found: boolean }[]>(
  'delete from seccomp_cr where namespace = $1::text and name = $2::text returning true as found',
)

/** DELETE /seccomp/crs/{namespace}/{name}: a custom resource that is gone (workload-profiling, Seccomp; interop-profiling 1.7). */
export default route({
  summary: 'Forgets a custom resource',
  answer: z.strictObject({ deleted: z.literal(true) }),
  also: { 404: ABSENT },
}).delete('/seccomp/crs/:namespace/:name', access('ingest'), params(CrPath), async (c) => {
  const { namespace, name } = c.req.valid('param')
  let wasLost = false
  const deleted = await c.get('deps').db.ingest((sql, isInDoubt) => {
    wasLost ||= isInDoubt
    return remove(sql, namespace, name)
  })
  // After an answer that was lost it is gone as well, and it was most likely this request that deleted it.
  if (deleted.length === 0 && !wasLost) throw new HttpError(404, ABSENT)
  return sendJson(c, '{"deleted":true}')
})
