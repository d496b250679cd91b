import { z } from 'zod'
import { sharedRead } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { shownAs } from '../../lib/http/declared.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { sendJson } from '../../lib/http/respond.ts'
import { query } from '../../lib/http/validate.ts'
import { PodRecord } from '../../lib/pods/index.ts'

const Query = z.object({
  include_dead: shownAs(z.enum(['true', 'false']).default('true'), {
    type: 'boolean',
    default: true,
    description: 'With `false` only pods running now.',
  }),
})

// Ordered before it is aggregated: PostgreSQL 15 would sort for an aggregate what an index has in order.
const list = sharedRead<'true' | 'false'>(async (db, includeDead) => {
  const bytes = await db.read.json(
    (sql) => sql`
      select coalesce(json_agg(r.pod), '[]')
      from (select pod_record(p) as pod
            from pod p
            where ${includeDead === 'true'}::boolean or not p.is_dead
            order by p.pod_namespace, p.pod_name) r`,
  )
  return bytes!
})

/** GET /pod/info: all pods, or with `include_dead=false` those running now, by namespace and name. */
export default route({ summary: 'All pods, or those running now, by namespace and name', answer: z.array(PodRecord) }).get(
  '/pod/info',
  access('read'),
  query(Query),
  charge(kib(5_000 * 4_096)),
  async (c) => sendJson(c, await list(c.get('deps').db, c.req.valid('query').include_dead)),
)
