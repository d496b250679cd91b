import type { Config } from '../lib/config/index.ts'
import type { Sql } from '../lib/db/index.ts'
import { inRestedBatches, inSequence, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'
import { countInstances, deleteInstances, deleteUnattributed } from './pods/instances.ts'
import { countLabels, deleteLabels } from './pods/labels.ts'
import { countNodeFacts, deleteNodeFacts } from './pods/nodes.ts'

const MAX_BATCHES = 200
/** Pods that one statement reads, dead or alive. */
const MAX_READ_AT_ONCE = 5_000
/** The default if neither dead pods nor verdicts have retention days, so that dead pods do not stay for ever. */
const DAYS_OF_LAST_RESORT = 7

/** Retention days of dead pods: their own, else those of verdicts, else seven (docs/contract.md#retention). */
export function deadPodDays({ deadPodRetentionDays, auditRetentionDays }: Config): number {
  return deadPodRetentionDays || auditRetentionDays || DAYS_OF_LAST_RESORT
}

const isExpired = (sql: Sql, days: number) => sql`
    p.is_dead and p.time_stamp < now() at time zone 'utc' - make_interval(days => ${days})`

/**
 * Deletes dead pods beyond their retention days, with their addresses (docs/contract.md#retention).
 *
 * Rows locked by another session are skipped, and a row written since the statement began is compared again under its
 * lock, so a pod that is being posted keeps its row. A later post waits for the batch and inserts a new row with its
 * addresses. The walk follows the primary key, because an index must not contain a column that posts change each
 * minute.
 */
function deletePods({ config, db, signal }: JobContext, days: number): Promise<Pass> {
  const batchRows = config.auditRetentionBatchSize
  let after = ''
  return inRestedBatches(signal, MAX_BATCHES, async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; last: string | null }[]>`
  with ${held(sql, 'dead-pod-retention')},
  looked_at as materialized (
    select p.ctid as place, p.pod_name, p.is_dead, p.time_stamp
    from pod p
    where p.pod_name > (select ${after}::text collate "C" from held where is_held)
    order by p.pod_name
    limit ${MAX_READ_AT_ONCE}),
  expired as materialized (
    select p.place, p.pod_name from looked_at p where ${isExpired(sql, days)} order by p.pod_name limit ${batchRows}),
  locked as materialized (
    select p.ctid as place from pod p
    where p.ctid = any (array(select e.place from expired e)) and ${isExpired(sql, days)}
    for update skip locked),
  deleted as (
    delete from pod p where p.ctid = any (array(select l.place from locked l)) returning p.pod_name),
  addresses as (
    delete from pod_address a where a.pod_name = any (array(select d.pod_name from deleted d)))
  select h.is_held,
         (select count(*)::int from deleted) as rows,
         coalesce( -- the last of a full batch; else the last of a full read; else null at the end
           (select e.pod_name from expired e order by e.pod_name offset ${batchRows - 1} limit 1),
           (select p.pod_name from looked_at p order by p.pod_name offset ${MAX_READ_AT_ONCE - 1} limit 1)) as last
  from held h`,
    )
    const { is_held, rows, last } = batch!
    if (last !== null) after = last
    return { isHeld: is_held, rows, isLast: last === null }
  })
}

/**
 * Deletes pods that are gone for longer than dead pods are kept: their rows, the instances behind their names, and
 * their labels, also those that a living pod had before; then the facts of nodes without any pod.
 */
export const deadPodRetention: Job = {
  name: 'dead-pod-retention',
  firstAfterSecs: 60,
  everySecs: (config) => config.auditRetentionIntervalSecs,

  run(context) {
    const days = deadPodDays(context.config)
    const steps = [deletePods, deleteInstances, deleteUnattributed, deleteLabels, deleteNodeFacts]
    return inSequence(steps.map((step) => () => step(context, days)))
  },

  async count({ config, db }) {
    const days = deadPodDays(config)
    const maxRows = MAX_BATCHES * config.auditRetentionBatchSize
    const [row] = await db.job(
      (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows from (select from pod p where ${isExpired(sql, days)}
                                     limit ${maxRows}) p`,
    )
    const labels = await countLabels({ db }, days, (sql) => isExpired(sql, days))
    const facts = await countNodeFacts({ db }, days, (sql) => isExpired(sql, days))
    return row!.rows + (await countInstances({ db }, days)) + labels + facts
  },
}
