import type { Sql } from '../lib/db/index.ts'
import { capabilityRetentionDays } from '../lib/runtime/capabilities/index.ts'
import { type Batch, inRestedBatchesOf, type Job, type JobContext } from './job.ts'
import { held } from './locks.ts'

const FIRST_AFTER_SECS = 165
/** For all tables together. */
const MAX_BATCHES = 200
/** Containers that one statement reads; four million per pass. */
const READ_AT_ONCE = 20_000

type Needs = Pick<JobContext, 'config' | 'db'>
/** Deletes one batch; each call continues where the last one ended. */
type Deletion = () => Promise<Batch>

const cutoff = (sql: Sql, days: number) => sql`(now() at time zone 'utc' - make_interval(days => ${days}))`

/** A table with the times that decide, and an index of their days. */
interface ByDay {
  readonly table: string
  readonly time: string
  readonly day: string
  readonly days: (config: Needs['config']) => number
  /** Whether images of deleted rows are to be linked again: a package may no longer be in use. */
  readonly isLinked: boolean
}

const FILES: ByDay = {
  table: 'runtime_executable',
  time: 'last_seen',
  day: 'last_seen_day',
  days: (config) => config.runtimeInventoryRetentionDays,
  isLinked: true,
}
const CAPABILITIES: ByDay = {
  table: 'runtime_capability',
  time: 'last_reported',
  day: 'last_reported_day',
  days: capabilityRetentionDays,
  isLinked: false,
}

/**
 * Whether a row `e` is older than its retention. The index has the day only; rows of the first retained day are
 * compared by time.
 */
function isOld(sql: Sql, { config }: Pick<Needs, 'config'>, { time, day, days }: ByDay) {
  const start = cutoff(sql, days(config))
  return sql`(e.${sql(day)} <= ${start}::date and e.${sql(time)} < ${start})`
}

/** Whether a container `c` sent no heartbeat within the retention. */
const isSilent = (sql: Sql, { config }: Pick<Needs, 'config'>) =>
  sql`c.last_heartbeat < ${cutoff(sql, config.runtimeInventoryRetentionDays)}`

/** Deletes rows, the oldest first by day. Locked rows are skipped and not counted: there may be more behind them. */
function oldest(context: Needs, of: ByDay): Deletion {
  const { config, db } = context
  const batchRows = config.imageInventoryBatchSize
  let day = '-infinity'
  return async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; found: number; day: string | null }[]>`
  with ${held(sql, 'runtime-retention')},
  locked as materialized (
    select e.ctid as place, e.${sql(of.day)} as day
    from ${sql(of.table)} e
    where (select is_held from held) and e.${sql(of.day)} >= ${day}::text::date and ${isOld(sql, context, of)}
    order by e.${sql(of.day)}
    limit ${batchRows}
    for update skip locked),
  deleted as (
    delete from ${sql(of.table)} e where e.ctid = any (array(select l.place from locked l)) returning e.image_digest),
  noted as (
    insert into use_news (image_digest, is_judged)
    select distinct d.image_digest, false from deleted d where ${of.isLinked} and d.image_digest <> '')
  select h.is_held,
         (select count(*)::int from deleted) as rows,
         (select count(*)::int from locked)  as found,
         (select max(l.day)::text from locked l) as day
  from held h`,
    )
    day = batch!.day ?? day
    return { isHeld: batch!.is_held, rows: batch!.rows, isLast: batch!.found < batchRows }
  }
}

/**
 * Deletes containers. No index has the time of their heartbeat, so all are read in the order of their ids. The limit
 * comes from a subquery: for an unknown limit the planner expects a tenth of the table, reads the index and sorts
 * nothing, whatever it estimates of the rows.
 */
function heartbeats(context: Needs): Deletion {
  const { config, db } = context
  const batchRows = config.imageInventoryBatchSize
  let after = ''
  return async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; last: string | null }[]>`
  with ${held(sql, 'runtime-retention')},
  looked_at as materialized (
    select c.ctid as place, c.container_id, c.last_heartbeat
    from runtime_coverage c
    where c.container_id > (select ${after}::text collate "C" from held where is_held)
    order by c.container_id
    limit (select ${READ_AT_ONCE}::bigint)),
  silent as materialized (
    select c.place, c.container_id from looked_at c where ${isSilent(sql, context)} order by c.container_id
           limit ${batchRows}),
  locked as materialized (
    select c.ctid as place
    from runtime_coverage c
    where c.ctid = any (array(select s.place from silent s)) and ${isSilent(sql, context)}
    for update skip locked),
  deleted as (
    delete from runtime_coverage c where c.ctid = any (array(select l.place from locked l)) returning 1)
  select h.is_held, (select count(*)::int from deleted) as rows,
         coalesce((select s.container_id from silent s order by s.container_id offset ${batchRows - 1} limit 1),
                  (select c.container_id from looked_at c order by c.container_id offset ${READ_AT_ONCE - 1}
                   limit 1)) as last
  from held h`,
    )
    const { is_held, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows, isLast: last === null }
  }
}

/**
 * Deletes files that nobody saw run, capabilities that nobody reported, and containers without a heartbeat, for the
 * retention days (docs/contract.md#retention). Rows locked by another session are skipped, and rows written since they
 * were found stay.
 */
export const runtimeRetention: Job = {
  name: 'runtime-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => (config.runtimeInventoryRetentionDays === 0 ? null : config.runtimeInventoryIntervalSecs),

  run: (context) =>
    inRestedBatchesOf(context.signal, MAX_BATCHES, [
      oldest(context, FILES),
      oldest(context, CAPABILITIES),
      heartbeats(context),
    ]),

  async count(context) {
    const [row] = await context.db.job(
      (sql) => sql<{ rows: number }[]>`
  select (select count(*)::int from runtime_executable e where ${isOld(sql, context, FILES)})
       + (select count(*)::int from runtime_capability e where ${isOld(sql, context, CAPABILITIES)})
       + (select count(*)::int from runtime_coverage c where ${isSilent(sql, context)}) as rows`,
    )
    return row!.rows
  },
}
