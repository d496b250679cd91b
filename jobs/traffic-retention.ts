import type { Database, Sql } from '../lib/db/index.ts'
import { countedDeletion } from '../lib/traffic/deletions.ts'
import { inRestedBatches, inSequence, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'
import { countAboveCap, trimPods } from './traffic-cap.ts'

const MAX_BATCHES = 200

/** The last flow that the pass has examined. */
interface Cursor {
  time: string
  uuid: string
}

const isExpired = (sql: Sql, days: number) =>
  sql`t.time_stamp < now() at time zone 'utc' - make_interval(days => ${days})`

/**
 * True if no living pod of that name had started by then. An unknown namespace on either side matches any, and an
 * unknown start counts as early enough. A pod whose agent is silent may live, and will not report its flows again.
 */
const isOfNoLivePod = (sql: Sql) => sql`
    not exists (
      select from pod p
      where p.pod_name = t.pod_name and may_be_alive(p)
        and (coalesce(p.pod_namespace, '') = '' or coalesce(t.pod_namespace, '') = ''
            or p.pod_namespace = t.pod_namespace)
        and (p.started_at is null or p.started_at <= t.time_stamp + interval '1 hour')
      offset 0)`

/**
 * The columns that make two flows the same rule; nulls are equal. The index `traffic_rules_of_pod` has these, in this
 * order.
 */
const rule = (sql: Sql, flow: string) => {
  const f = sql(flow)
  return sql`
        ${f}.pod_name, ${f}.pod_namespace, ${f}.peer_kind, ${f}.peer_namespace, ${f}.peer_workload_kind,
        coalesce(${f}.peer_workload_name, ${f}.peer_name), ${f}.traffic_type, ${f}.ip_protocol, ${f}.pod_port,
        ${f}.traffic_in_out_port, ${f}.decision`
}

const hashesOf = (sql: Sql, flow: string) =>
  sql`hash_record(row(${sql(flow)}.pod_name)), hash_record(row(${rule(sql, flow)}))`

/**
 * True if the same pod has a newer flow of the same rule. The next index entry decides: with this order no other plan
 * is competitive, and a hash collision could only keep a flow.
 */
const isSuperseded = (sql: Sql) => sql`
    t.peer_kind in ('pod', 'service') and coalesce((
      select row(${rule(sql, 'n')}) is not distinct from row(${rule(sql, 't')})
      from traffic n
      where n.peer_kind in ('pod', 'service') and (${hashesOf(sql, 'n')}, n.time_stamp) > (${hashesOf(sql, 't')},
          t.time_stamp)
      order by ${hashesOf(sql, 'n')}, n.time_stamp
      limit 1), false)`

/** Whether an expired flow `t` may be deleted (docs/contract.md#retention). */
const isDeletable = (sql: Sql) => sql`(${isOfNoLivePod(sql)} or ${isSuperseded(sql)})`

/**
 * The first flows after `start` that are expired. The limit applies before the age, so that a statement stays short.
 */
const examined = (sql: Sql, days: number, batchRows: number) => sql`
  examined as materialized (
    select t.*
    from (select t.ctid as place, t.*
          from traffic t
          where (t.time_stamp, t.uuid) > ((select s.time_stamp from start s), (select s.uuid from start s))
          order by t.time_stamp, t.uuid
          limit ${batchRows}) t
    where ${isExpired(sql, days)})`

/** The last flow of a full batch; no row at the end of the expired flows. */
const lastExamined = (sql: Sql, batchRows: number) => sql`
    select e.time_stamp, e.uuid from examined e order by e.time_stamp, e.uuid offset ${batchRows - 1} limit 1`

/**
 * Deletes old flows that no living pod needs (docs/contract.md#retention): those of pods that are gone, and those with
 * a newer flow of the same rule. A living pod never reports a flow twice, so its other flows stay at any age. Then
 * flows above the cap, if there is one (`traffic-cap.ts`).
 *
 * The cursor is stored in the database with each batch and reset at the end of the expired flows. Flows that are locked
 * by another session are skipped.
 */
export const trafficRetention: Job = {
  name: 'traffic-retention',
  firstAfterSecs: 150,
  everySecs: ({ trafficRetentionDays, trafficMaxRowsPerPod, trafficRetentionIntervalSecs }) =>
    trafficRetentionDays === 0 && trafficMaxRowsPerPod === 0 ? null : trafficRetentionIntervalSecs,

  run(context) {
    const { trafficRetentionDays, trafficMaxRowsPerPod } = context.config
    return inSequence([
      ...(trafficRetentionDays === 0 ? [] : [() => deleteOld(context)]),
      ...(trafficMaxRowsPerPod === 0 ? [] : [() => trimPods(context)]),
    ])
  },

  async count(context) {
    const { config, db } = context
    const aged =
      config.trafficRetentionDays === 0
        ? 0
        : await countOld(db, config.trafficRetentionDays, config.trafficRetentionBatchSize)
    if (config.trafficMaxRowsPerPod === 0) return aged
    const isDeletedByAge = (sql: Sql) =>
      config.trafficRetentionDays === 0
        ? sql`false`
        : sql`(${isExpired(sql, config.trafficRetentionDays)} and ${isDeletable(sql)})`
    return aged + (await countAboveCap(context, isDeletedByAge))
  },
}

function deleteOld({ config, db, signal }: JobContext): Promise<Pass> {
  const { trafficRetentionDays: days, trafficRetentionBatchSize: batchRows } = config
  return inRestedBatches(signal, MAX_BATCHES, async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; found: number; rows: number }[]>`
  with ${held(sql, 'traffic-retention')},
  start as materialized (
    select coalesce(c.time_stamp, '-infinity') as time_stamp, coalesce(c.uuid, '') as uuid
    from held h left join traffic_retention_cursor c on true
    where h.is_held),
  ${examined(sql, days, batchRows)},
  deletable as materialized (
    select t.place from examined t where ${isDeletable(sql)}),
  locked as materialized (
    select t.ctid as place from traffic t
    where t.ctid = any (array(select d.place from deletable d))
    for update skip locked),
  deleted as (
    delete from traffic t where t.ctid = any (array(select l.place from locked l)) returning 1),
  ${countedDeletion(sql)},
  moved as (
    insert into traffic_retention_cursor (time_stamp, uuid)
    select l.time_stamp, l.uuid from held h left join (${lastExamined(sql, batchRows)}) l on true where h.is_held
    on conflict (is_only) do update set time_stamp = excluded.time_stamp, uuid = excluded.uuid)
  select h.is_held,
         (select count(*)::int from examined) as found,
         (select count(*)::int from deleted)  as rows
  from held h`,
    )
    const { is_held, found, rows } = batch!
    return { isHeld: is_held, rows, isLast: found < batchRows }
  })
}

/** Returns how many flows the next pass would delete by age. */
async function countOld(db: Database, days: number, batchRows: number): Promise<number> {
  let after: Cursor | null = null
  let rows = 0
  for (let batches = 0; batches < MAX_BATCHES; batches++) {
    const { time, uuid }: { time: string | null; uuid: string | null } = after ?? { time: null, uuid: null }
    const [batch]: { rows: number; time: string | null; uuid: string | null }[] = await db.job(
      (sql) => sql<{ rows: number; time: string | null; uuid: string | null }[]>`
  with start as materialized (
    select coalesce(${time}::text::timestamp, c.time_stamp, '-infinity') as time_stamp,
           coalesce(${uuid}::text, c.uuid, '') as uuid
    from (values (1)) one left join traffic_retention_cursor c on true),
  ${examined(sql, days, batchRows)}
  select (select count(*)::int from examined t where ${isDeletable(sql)}) as rows, l.time_stamp::text as time, l.uuid
  from (values (1)) one left join (${lastExamined(sql, batchRows)}) l on true`,
    )
    rows += batch!.rows
    if (batch!.time === null || batch!.uuid === null) break
    after = { time: batch!.time, uuid: batch!.uuid }
  }
  return rows
}
