import type { Config } from '../lib/config.ts'
import type { Sql } from '../lib/db/index.ts'
import { inRestedBatches, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'
import { countUnused, deleteInstances, deleteUnattributed } from './pods/instances.ts'

const MAX_BATCHES = 200
/** Pods that one statement reads, dead or not. */
const MAX_READ_AT_ONCE = 5_000
/** Days where neither dead pods nor verdicts have any: dead pods do not stay for ever (interop-core 7.2). */
const DAYS_OF_LAST_RESORT = 7

/** Days that dead pods are kept: their own, else those of the verdicts, else seven (interop-core 7.2). */
export function deadPodDays({ deadPodRetentionDays, auditRetentionDays }: Config): number {
  return deadPodRetentionDays || auditRetentionDays || DAYS_OF_LAST_RESORT
}

const isExpired = (sql: Sql, days: number) => sql`
    p.is_dead and p.time_stamp < now() at time zone 'utc' - make_interval(days => ${days})`

/**
 * Deletes dead pods whose record is older than the days they are kept, with their addresses (interop-core 7.2; core-telemetry,
 * States and transitions).
 *
 * A row that somebody is writing is passed over. One that was written since the statement began is asked again under its lock,
 * so a pod that is posted at that moment keeps its row; and who posts it later waits for the batch and then makes a new row,
 * addresses included. The walk is over the key: no index may hold what a post changes each minute.
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
         coalesce( -- the last of a full batch; else the last pod looked at; else there are no more
           (select e.pod_name from expired e order by e.pod_name offset ${batchRows - 1} limit 1),
           (select p.pod_name from looked_at p order by p.pod_name offset ${MAX_READ_AT_ONCE - 1} limit 1)) as last
  from held h`,
    )
    const { is_held, rows, last } = batch!
    if (last !== null) after = last
    return { isHeld: is_held, rows, isLast: last === null }
  })
}

/** Deletes pods that are gone for the days that dead pods are kept: their rows, and what is known of those behind the names. */
export const deadPodRetention: Job = {
  name: 'dead-pod-retention',
  firstAfterSecs: 60,
  everySecs: (config) => config.auditRetentionIntervalSecs,

  async run(context) {
    const days = deadPodDays(context.config)
    let pass: Pass = { outcome: 'done', rows: 0, batches: 0 }
    for (const step of [deletePods, deleteInstances, deleteUnattributed]) {
      const { outcome, rows, batches } = await step(context, days)
      const isOver = outcome === 'skipped' || outcome === 'aborted'
      pass = {
        outcome: isOver || pass.outcome === 'done' ? outcome : pass.outcome,
        rows: pass.rows + rows,
        batches: pass.batches + batches,
      }
      if (isOver) break
    }
    return pass
  },

  async count({ config, db }) {
    const maxRows = MAX_BATCHES * config.auditRetentionBatchSize
    const [row] = await db.job(
      (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows from (select from pod p where ${isExpired(sql, deadPodDays(config))} limit ${maxRows}) p`,
    )
    return row!.rows + (await countUnused({ db }, deadPodDays(config)))
  },
}
