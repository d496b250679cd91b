import type { Sql } from '../lib/db/index.ts'
import { type Batch, inRestedBatchesOf, type Job, type JobContext } from './job.ts'
import { held } from './locks.ts'

const FIRST_AFTER_SECS = 180
/** For all tables together. */
const MAX_BATCHES = 200

type Condition = ReturnType<Sql>

const cutoff = (sql: Sql, { config }: Pick<JobContext, 'config'>) =>
  sql`(now() at time zone 'utc' - make_interval(days => ${config.profileVersionsRetentionDays}))`

/** Whether the workload of a row `t` is in the list, as a row `p` that meets a condition. */
const isListed = (sql: Sql, condition: Condition) => sql`
      exists (
        select from workload_profile p
        where p.pod_namespace = t.pod_namespace and p.workload_kind = t.workload_kind
          and p.workload_name = t.workload_name and p.cluster_id = t.cluster_id and ${condition})`

/** Whether a workload has a row `n` of a table that is newer than the row `t`. */
const hasNewer = (sql: Sql, table: string, isNewer: Condition) => sql`
      exists (
        select from ${sql(table)} n
        where n.pod_namespace = t.pod_namespace and n.workload_kind = t.workload_kind
          and n.workload_name = t.workload_name and n.cluster_id = t.cluster_id and ${isNewer})`

/** A table, the time of its rows, and which of those that are old may go. */
interface Kind {
  readonly table: string
  readonly time: string
  /** `isKept`: whether a row of the list stays in it. */
  readonly isSpare: (sql: Sql, isKept: Condition) => Condition
}

/** In this order: a workload that has left the list keeps nothing. */
const KINDS: readonly Kind[] = [
  { table: 'workload_profile', time: 'computed_at', isSpare: (sql) => sql`true` },
  {
    table: 'workload_profile_version',
    time: 'created_at',
    isSpare: (sql, isKept) => sql`
    (not ${isListed(sql, isKept)}
     or ${hasNewer(sql, 'workload_profile_version', sql`n.revision > t.revision`)})`,
  },
  {
    table: 'workload_profile_export',
    time: 'exported_at',
    isSpare: (sql, isKept) => sql`
    (not ${isListed(sql, isKept)}
     or ${hasNewer(sql, 'workload_profile_export', sql`(n.exported_at, n.id) > (t.exported_at, t.id)`)})`,
  },
]

/** Deletes one batch, the oldest rows first. Of rows that stay, each batch reads at most one for each workload. */
async function remove(context: JobContext, { table, time, isSpare }: Kind): Promise<Batch> {
  const max = context.config.imageInventoryBatchSize
  const [batch] = await context.db.job(
    (sql) => sql<{ is_held: boolean; rows: number }[]>`
  with ${held(sql, 'profile-retention')},
  old as materialized (
    select t.ctid as place
    from ${sql(table)} t
    where (select is_held from held) and t.${sql(time)} < ${cutoff(sql, context)} and ${isSpare(sql, sql`true`)}
    order by t.${sql(time)}
    limit ${max}
    for update of t skip locked),
  deleted as (delete from ${sql(table)} t where t.ctid = any (array(select o.place from old o)) returning 1)
  select h.is_held, (select count(*)::int from deleted) as rows from held h`,
  )
  return { isHeld: batch!.is_held, rows: batch!.rows, isLast: batch!.rows < max }
}

/**
 * Deletes workloads from the list whose profiles were not computed for the retention days, then older versions and
 * older records of exports (docs/contract.md#retention). The newest version and the newest export of a workload stay as
 * long as it is in the list. Rows locked by another session are skipped.
 */
export const profileRetention: Job = {
  name: 'profile-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => (config.profileVersionsRetentionDays === 0 ? null : config.profileVersionsIntervalSecs),

  run: (context) =>
    inRestedBatchesOf(
      context.signal,
      MAX_BATCHES,
      KINDS.map((kind) => () => remove(context, kind)),
    ),

  async count(context) {
    let rows = 0
    for (const { table, time, isSpare } of KINDS) {
      const [found] = await context.db.job(
        (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows
  from ${sql(table)} t
  where t.${sql(time)} < ${cutoff(sql, context)}
    and ${isSpare(sql, sql`p.computed_at >= ${cutoff(sql, context)}`)}`,
      )
      rows += found!.rows
    }
    return rows
  },
}
