import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { fixed } from '../../lib/db/index.ts'
import { access, params, route, sendJson, wireTime } from '../../lib/http/index.ts'
import { noProfile, WorkloadPath } from '../../lib/seccomp/index.ts'
import { fromPostgres } from '../../lib/time/timestamp.ts'

const Reset = z
  .strictObject({
    namespace: z.string(),
    kind: z.string(),
    name: z.string(),
    resetAt: wireTime.describe('The start of the new set: names sent before stay out.'),
  })
  .meta({ id: 'SeccompProfileReset' })

const reset = fixed<{ reset_at: string | null }[]>(
  'select reset_syscalls($1::text, $2::text, $3::text, $4::text::uuid)::text as reset_at',
)

/**
 * POST /seccomp/profiles/{namespace}/{kind}/{name}/reset: empties the observed set (docs/contract.md#seccomp-profiles).
 * Safe to repeat.
 */
export default route({
  summary: 'Reset the observed syscalls of a workload',
  description:
    'Names sent before stay out of the set, also when they are sent again. Exports mention the reset until the new ' +
    'set is complete. Pods older than the reset do not make it complete, since agents send a name once: restart ' +
    'them. A set without observations since the last reset stays as it is.',
  answer: Reset,
  also: { 404: noProfile().message },
}).post('/seccomp/profiles/:namespace/:kind/:name/reset', access('ingest'), params(WorkloadPath), async (c) => {
  const { db, profiles } = c.get('deps')
  const { namespace, kind, name } = c.req.valid('param')
  // If the answer is lost the statement is repeated; the id tells it what the first attempt did.
  const id = randomUUID()
  const [row] = await db.ingest((sql) => reset(sql, namespace, kind, name, id))
  if (row!.reset_at === null) throw noProfile()
  profiles.list.forget()
  const resetAt = fromPostgres(row!.reset_at)
  return sendJson(c, JSON.stringify({ namespace, kind, name, resetAt } satisfies z.output<typeof Reset>))
})
