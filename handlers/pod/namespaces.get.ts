import { z } from 'zod'
import { sharedRead } from '../../lib/db/batcher.ts'
import { access, charge, NoParameters, query, route, sendJson } from '../../lib/http/index.ts'

// One index look-up for each namespace, instead of a scan of all live pods.
const list = sharedRead<'all'>(async (db) => {
  const bytes = await db.read.json(
    (sql) => sql`
      with recursive step(namespace) as (
        (select pod_namespace from pod where not is_dead and pod_namespace is not null order by pod_namespace limit 1)
        union all
        select (select pod_namespace from pod
                where not is_dead and pod_namespace > step.namespace order by pod_namespace limit 1)
        from step where step.namespace is not null)
      select coalesce(json_agg(namespace order by namespace), '[]') from step where namespace is not null`,
  )
  return bytes!
})

/** GET /pod/namespaces: the namespaces of pods running now, each once, ascending. */
export default route({
  summary: 'List the namespaces of pods running now',
  answer: z.array(z.string()),
}).get('/pod/namespaces', access('read'), query(NoParameters, { unknown: 'ignored' }), charge(64), async (c) =>
  sendJson(c, await list(c.get('deps').db, 'all')),
)
