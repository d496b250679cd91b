import { z } from 'zod'
import { sharedRead } from '../../lib/db/folded.ts'
import { access } from '../../lib/http/access.ts'
import { route } from '../../lib/http/context.ts'
import { shownAs } from '../../lib/http/declared.ts'
import { charge, kib } from '../../lib/http/read-budget.ts'
import { sendJson } from '../../lib/http/respond.ts'

const CHARGE_KIB = kib(1_000 * 256)

const zonedTime = shownAs(z.string().regex(/Z$/), { type: 'string', format: 'date-time', description: 'RFC 3339, UTC, with `Z`.' })

const NodeStatus = z
  .strictObject({
    staleAfterSecs: z.int().min(0),
    nodes: z.array(
      z.strictObject({
        node: z.string(),
        lastPodPostAt: zonedTime.nullable(),
        alivePods: z.int().min(0),
        lastHeartbeatAt: zonedTime.nullable(),
        stale: z.boolean(),
      }),
    ),
  })
  .meta({ id: 'NodeStatus' })

// Never posted is stale too.
const status = sharedRead<number>(async (db, staleAfterSecs) => {
  const bytes = await db.read.json(
    (sql) => sql`
  with posted as (
    select node_name, max(time_stamp) as last_post_at, count(*) filter (where not is_dead) as alive
    from pod
    group by node_name),
  node as (
    select node_name from posted union select node_name from node_heartbeat)
  select json_build_object('staleAfterSecs', ${staleAfterSecs}::int, 'nodes', coalesce(json_agg(json_build_object(
           'node', n.node_name,
           'lastPodPostAt', wire_time(p.last_post_at) || 'Z',
           'alivePods', coalesce(p.alive, 0),
           'lastHeartbeatAt', wire_time(h.updated_at) || 'Z',
           'stale', p.last_post_at is null or p.last_post_at < now() at time zone 'utc' - make_interval(secs => ${staleAfterSecs}::int)
         ) order by n.node_name), '[]'))
  from node n
  left join posted p on p.node_name = n.node_name
  left join node_heartbeat h on h.node_name = n.node_name`,
  )
  return bytes!
})

/** GET /node/status: which nodes' agents still report, ordered by node (core-telemetry, Nodes; interop-core 1.8). */
export default route({ summary: 'Which nodes still report', answer: NodeStatus }).get(
  '/node/status',
  access('read'),
  charge(CHARGE_KIB),
  async (c) => {
    const { db, config } = c.get('deps')
    return sendJson(c, await status(db, config.peerStaleAliveSecs))
  },
)
