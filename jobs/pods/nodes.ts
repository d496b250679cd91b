import type postgres from 'postgres'
import type { Sql } from '../../lib/db/index.ts'
import { inRestedBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

const isBefore = (sql: Sql, days: number) => sql`
    f.time_stamp < now() at time zone 'utc' - make_interval(days => ${days})`

/** Whether no pod, but those that are `expired`, and no heartbeat is known of the node of facts `f`. */
const isGone = (sql: Sql, expired: postgres.Fragment = sql`false`) => sql`
    f.node_name not in (select p.node_name from pod p where not (${expired}))
    and not exists (select from compute_node c where c.node = f.node_name)`

/** Deletes the facts of nodes that are gone, which would count as nodes of the cluster for ever. */
export function deleteNodeFacts({ db, signal }: JobContext, days: number): Promise<Pass> {
  return inRestedBatches(signal, 1, async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number }[]>`
  with ${held(sql, 'dead-pod-retention')},
  gone as materialized (
    select f.node_name from node_facts f
    where (select is_held from held) and ${isBefore(sql, days)} and ${isGone(sql)}),
  locked as materialized (
    select f.node_name from node_facts f
    where f.node_name = any (array(select g.node_name from gone g)) and ${isBefore(sql, days)}
    for update skip locked),
  deleted as (
    delete from node_facts f where f.node_name = any (array(select l.node_name from locked l)) returning 1)
  select h.is_held, (select count(*)::int from deleted) as rows from held h`,
    )
    return { isHeld: batch!.is_held, rows: batch!.rows, isLast: true }
  })
}

/** Returns how many rows a pass would delete, after it deleted the pods `p` that are `expired`. */
export async function countNodeFacts(
  { db }: Pick<JobContext, 'db'>,
  days: number,
  expired: (sql: Sql) => postgres.Fragment,
): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows from node_facts f where ${isBefore(sql, days)} and ${isGone(sql, expired(sql))}`,
  )
  return row!.rows
}
