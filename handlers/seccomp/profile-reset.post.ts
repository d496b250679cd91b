import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { fixed } from '../../lib/db/index.ts'
import { access, params, route, sendJson, wireTime } from '../../lib/http/index.ts'
import { noProfile, WorkloadPath } from '../../lib/seccomp/index.ts'
import { parseNaive } from '../../lib/time/timestamp.ts'

const Reset = z
  .strictObject({
    namespace: z.string(),
    kind: z.string(),
    name: z.string(),
    resetAt: wireTime.describe('Since when the set is observed: what was sent before stays out.'),
  })
  .meta({ id: 'SeccompProfileReset' })

const reset = fixed<{ reset_at: string | null }[]>(
  'select reset_syscalls($1::text, $2::text, $3::text, $4::text::uuid)::text as reset_at',
)

/** POST /seccomp/profiles/{namespace}/{kind}/{name}/reset: begins the observed set of a workload anew; safe to repeat. */
export default route({
  summary: 'Begins the observed set of a workload anew',
  description:
    'What was sent before stays out of the set, also when it is sent again. Exports tell of the reset until the new set is complete. Pods that are older than it do not make it complete, since agents send a name once: restart them. A set of which nothing was observed since the last reset stays as it is.',
  answer: Reset,
  also: { 404: noProfile().message },
}).post('/seccomp/profiles/:namespace/:kind/:name/reset', access('ingest'), params(WorkloadPath), async (c) => {
  const { db, profiles } = c.get('deps')
  const { namespace, kind, name } = c.req.valid('param')
  // An answer that was lost is asked for again: what the first attempt did is known by its id.
  const id = randomUUID()
  const [row] = await db.ingest((sql) => reset(sql, namespace, kind, name, id))
  if (row!.reset_at === null) throw noProfile()
  profiles.list.forget()
  const resetAt = parseNaive(row!.reset_at.replace(' ', 'T'))!
  return sendJson(c, JSON.stringify({ namespace, kind, name, resetAt } satisfies z.output<typeof Reset>))
})
