import type { Sql } from '../lib/db/index.ts'
import { inBatches, type Job } from './job.ts'
import { held } from './locks.ts'

const BATCH_ROWS = 1_000
const MAX_BATCHES = 200
/** Nodes listed in the warning. */
const MAX_NODES_LISTED = 20

const isStale = (sql: Sql, windowSecs: number) => sql`
    not p.is_dead and p.time_stamp < now() at time zone 'utc' - make_interval(secs => ${windowSecs})`

/**
 * Marks pods dead that their agent has stopped posting, and logs the nodes they ran on (docs/contract.md#pods). Rows
 * locked by another session are skipped: most likely the pod is being posted, and if not, the next pass finds it.
 */
export const staleSweep: Job = {
  name: 'stale-sweep',
  everySecs: (config) => (config.peerStaleAliveSecs === 0 ? null : config.peerLateResolveIntervalSecs),

  async run({ config, db, log, signal }) {
    let after = ''
    const podsByNode = new Map<string, number>()
    try {
      return await inBatches(signal, MAX_BATCHES, async () => {
        const [batch] = await db.job(
          (sql) => sql<
            { is_held: boolean; found: number; last: string | null; nodes: [node: string, pods: number][] }[]
          >`
  with ${held(sql, 'stale-sweep')},
  stale as materialized (
    select p.ctid as place, p.pod_name
    from pod p
    where (select is_held from held) and ${isStale(sql, config.peerStaleAliveSecs)} and p.pod_name > ${after}
    order by p.pod_name
    limit ${BATCH_ROWS}
    for no key update skip locked),
  swept as (
    update pod p set is_dead = true, swept_at = now() at time zone 'utc' from stale s
      where p.ctid = s.place returning p.node_name)
  select h.is_held, (select count(*)::int from stale) as found, (select max(pod_name) from stale) as last,
         (select coalesce(json_agg(json_build_array(n.node_name, n.pods)), '[]')
          from (select node_name, count(*) as pods from swept group by node_name) n) as nodes
  from held h`,
        )
        const { is_held, found, last, nodes } = batch!
        if (last !== null) after = last
        for (const [node, pods] of nodes) podsByNode.set(node, (podsByNode.get(node) ?? 0) + pods)
        return { isHeld: is_held, rows: nodes.reduce((sum, [, pods]) => sum + pods, 0), isLast: found < BATCH_ROWS }
      })
    } finally {
      // Also logged if the pass ends early: no later pass finds pods that are dead already.
      if (podsByNode.size > 0) {
        const pods = [...podsByNode.values()].reduce((sum, count) => sum + count)
        const fields = {
          pods,
          nodes: podsByNode.size,
          podsByNode: largestFirst(podsByNode),
          windowSecs: config.peerStaleAliveSecs,
        }
        log.warn(fields, 'pods that were not posted again are marked dead')
      }
    }
  },

  async count({ config, db }) {
    const [row] = await db.job(
      (sql) =>
        sql<
          { rows: number }[]
        >`select count(*)::int as rows from pod p where ${isStale(sql, config.peerStaleAliveSecs)}`,
    )
    return row!.rows
  },
}

/** `node-b=7, node-a=2, +3 more`: at most 20 nodes, nodes with equal counts by name. */
export function largestFirst(podsByNode: ReadonlyMap<string, number>): string {
  const sorted = [...podsByNode].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
  const listed = sorted.slice(0, MAX_NODES_LISTED).map(([node, pods]) => `${node}=${pods}`)
  if (sorted.length > MAX_NODES_LISTED) listed.push(`+${sorted.length - MAX_NODES_LISTED} more`)
  return listed.join(', ')
}
