import { z } from 'zod'
import { sharedRead } from '../../lib/db/batcher.ts'
import { access, asArray, charge, kib, NoParameters, query, route, sendJson, zonedTime } from '../../lib/http/index.ts'
import { staleAfterSecs } from '../../lib/nodes/index.ts'
import { listReader } from '../../lib/records/index.ts'

const CHARGE_KIB = kib(1_000 * 256)

const Node = z.strictObject({
  node: z.string(),
  lastPodPostAt: zonedTime.nullable(),
  alivePods: z.int().min(0),
  lastHeartbeatAt: zonedTime.nullable(),
  stale: z.boolean(),
})

const NodeStatus = z
  .strictObject({
    staleAfterSecs: z.int().min(0),
    nodes: z.array(Node),
  })
  .meta({ id: 'NodeStatus' })

// A node that never posted a pod is stale too.
const nodes = listReader(
  Node,
  `with posted as (
     select node_name, max(time_stamp) as last_post_at, count(*) filter (where not is_dead) as alive
     from pod
     group by node_name),
   node as (
     select node_name from posted union select node from compute_node)
   select n.node_name as node, p.last_post_at as last_pod_post_at, coalesce(p.alive, 0) as alive_pods,
          h.updated_at as last_heartbeat_at,
          p.last_post_at is null or p.last_post_at < now() at time zone 'utc' - make_interval(secs => $1::int) as stale
   from node n
   left join posted p on p.node_name = n.node_name
   left join compute_node h on h.node = n.node_name
   order by n.node_name`,
)
const status = sharedRead<number>(async (db, secs) => {
  const list = asArray(await nodes(db.read, secs))
  return Buffer.concat([Buffer.from(`{"staleAfterSecs":${secs},"nodes":`), list, Buffer.from('}')])
})

/** GET /node/status: when each node last posted its pods and its heartbeat, by node (docs/contract.md#pods). */
export default route({ summary: 'List the nodes and when they last reported', answer: NodeStatus }).get(
  '/node/status',
  access('read'),
  query(NoParameters, { unknown: 'ignored' }),
  charge(CHARGE_KIB),
  async (c) => {
    const { db, config } = c.get('deps')
    return sendJson(c, await status(db, staleAfterSecs(config)))
  },
)
