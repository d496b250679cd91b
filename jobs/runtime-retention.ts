import type { Sql } from '../lib/db/index.ts'
import { type Batch, inRestedBatchesOf, type Job, type JobContext } from './job.ts'
import { held } from './locks.ts'

const FIRST_AFTER_SECS = 165
/** For both tables together. */
const MAX_BATCHES = 200
/** Containers that one statement reads; four million per pass. */
const READ_AT_ONCE = 20_000

type Needs = Pick<JobContext, 'config' | 'db'>
/** Deletes one batch; each call continues where the last one ended. */
type Deletion = () => Promise<Batch>

const cutoff = (sql: Sql, { config }: Pick<Needs, 'config'>) => sql`
    (now() at time zone 'utc' - make_interval(days => ${config.runtimeInventoryRetentionDays}))`

/**
 * Whether an executable `e` was not seen within the retention. The index has the day only; rows of the first retained
 * day are compared by time.
 */
const isUnseen = (sql: Sql, context: Pick<Needs, 'config'>) => sql`
    (e.last_seen_day <= ${cutoff(sql, context)}::date and e.last_seen < ${cutoff(sql, context)})`

/** Whether a container `c` sent no heartbeat within the retention. */
const isSilent = (sql: Sql, context: Pick<Needs, 'config'>) => sql`c.last_heartbeat < ${cutoff(sql, context)}`

/**
 * Deletes files, the oldest first by day, and notes their images, of which a package may no longer be in use. Locked rows
 * are skipped and not counted: there may be more behind them.
 */
function executables(context: Needs): Deletion {
  const { config, db } = context
  const batchRows = config.imageInventoryBatchSize
  let day = '-infinity'
  return async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; found: number; day: string | null }[]>`
  with ${held(sql, 'runtime-retention')},
  locked as materialized (
    select e.ctid as place, e.last_seen_day
    from runtime_executable e
    where (select is_held from held) and e.last_seen_day >= ${day}::text::date and ${isUnseen(sql, context)}
    order by e.last_seen_day
    limit ${batchRows}
    for update skip locked),
  deleted as (
    delete from runtime_executable e where e.ctid = any (array(select l.place from locked l))
    returning e.image_digest),
  noted as (
    insert into use_news (image_digest, is_judged)
    select distinct d.image_digest, false from deleted d where d.image_digest <> '')
  select h.is_held,
         (select count(*)::int from deleted) as rows,
         (select count(*)::int from locked)  as found,
         (select max(l.last_seen_day)::text from locked l) as day
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
 * Deletes files that nobody saw run, and containers without a heartbeat, for the retention days
 * (docs/contract.md#retention). Rows locked by another session are skipped, and rows written since they were found
 * stay.
 */
export const runtimeRetention: Job = {
  name: 'runtime-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => (config.runtimeInventoryRetentionDays === 0 ? null : config.runtimeInventoryIntervalSecs),

  run: (context) => inRestedBatchesOf(context.signal, MAX_BATCHES, [executables(context), heartbeats(context)]),

  async count(context) {
    const [row] = await context.db.job(
      (sql) => sql<{ rows: number }[]>`
  select (select count(*)::int from runtime_executable e where ${isUnseen(sql, context)})
       + (select count(*)::int from runtime_coverage c where ${isSilent(sql, context)}) as rows`,
    )
    return row!.rows
  },
}
