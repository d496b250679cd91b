import type { Sql } from '../lib/db/index.ts'
import { inBatches, type Job } from './job.ts'
import { held } from './locks.ts'

/** Flows without a peer that a pass tries: 20 000, the oldest (interop-core 7.1). */
const MAX_TRIED = 20_000
/** Rows that one statement reads, whether or not they have a peer already. */
const BATCH_ROWS = 2_000
/** Rows that a pass reads: ten million. */
const MAX_BATCHES = 5_000

/** Where a pass has got to: every flow up to this one has been looked at. */
interface Cursor {
  time: string
  uuid: string
}

const isYoung = (sql: Sql, windowSecs: number) => sql`
    t.time_stamp >= now() at time zone 'utc' - make_interval(secs => ${windowSecs})`

const isOpen = (sql: Sql) => sql`t.peer_kind is null and t.traffic_in_out_ip is not null`

/** The peers of those candidates that have one by now, as at ingest: a pod before a service, by the flow's own time (interop-core 2.2). */
const peers = (sql: Sql) => sql`
    select c.place,
           case when p.pod_name is null then 'service' when p.host_network then 'node' else 'pod' end as kind,
           case when p.pod_name is null then s.svc_namespace else p.pod_namespace end as namespace,
           coalesce(p.pod_name, s.svc_name) as name,
           case when p.pod_name is null then s.svc_uid else p.pod_uid end as uid,
           p.workload_kind, p.workload_name
    from candidate c
    left join lateral pod_holding(c.traffic_in_out_ip, c.time_stamp) p on true
    left join service s on p.pod_name is null and s.svc_ip = c.traffic_in_out_ip
    where p.pod_name is not null or s.svc_ip is not null`

/**
 * Looks again for the peers of young flows that had none when they came in (interop-core 7.1). A stamped flow is never changed.
 *
 * Two habits keep each statement short whatever the planner believes about the table: rows are read by time under a limit
 * and only then asked whether they have a peer, and they are updated by their place. A row that has moved since is left
 * to the next pass.
 */
export const lateResolve: Job = {
  name: 'late-resolve',
  everySecs: (config) => (config.peerLateResolveWindowSecs === 0 ? null : config.peerLateResolveIntervalSecs),

  async run({ config, db, signal }) {
    let after: Cursor = { time: '-infinity', uuid: '' }
    let tried = 0
    const pass = await inBatches(signal, MAX_BATCHES, async () => {
      const [batch] = await db.probe(
        (sql) => sql<{ is_held: boolean; read: number; tried: number; rows: number; time: string | null; uuid: string | null }[]>`
  with ${held(sql, 'late-resolve')},
  read as materialized (
    select t.*
    from (select t.ctid as place, t.uuid, t.time_stamp, t.traffic_in_out_ip, t.peer_kind
          from traffic t
          where ${isYoung(sql, config.peerLateResolveWindowSecs)}
            and (t.time_stamp, t.uuid) > (${after.time}::text::timestamp, ${after.uuid})
          order by t.time_stamp, t.uuid
          limit ${BATCH_ROWS}) t
    where (select is_held from held)),
  candidate as materialized (
    select t.* from read t where ${isOpen(sql)} order by t.time_stamp, t.uuid limit ${MAX_TRIED - tried}),
  stamped as (
    update traffic t
    set peer_kind = r.kind, peer_namespace = r.namespace, peer_name = r.name, peer_uid = r.uid,
        peer_workload_kind = r.workload_kind, peer_workload_name = r.workload_name, peer_resolved_at = now() at time zone 'utc'
    from (${peers(sql)}) r
    where t.ctid = r.place and t.peer_kind is null
    returning t.uuid)
  select h.is_held,
         (select count(*)::int from read)      as read,
         (select count(*)::int from candidate) as tried,
         (select count(*)::int from stamped)   as rows,
         last.time_stamp::text as time, last.uuid
  from held h
  left join lateral (select r.time_stamp, r.uuid from read r order by r.time_stamp desc, r.uuid desc limit 1) last on true`,
      )
      const { is_held, read, rows, time, uuid } = batch!
      tried += batch!.tried
      if (time !== null && uuid !== null) after = { time, uuid }
      return { isHeld: is_held, rows, isLast: read < BATCH_ROWS || tried >= MAX_TRIED }
    })
    return pass.outcome === 'done' && tried >= MAX_TRIED ? { ...pass, outcome: 'capped' } : pass
  },

  async count({ config, db }) {
    const [row] = await db.probe(
      (sql) => sql<{ rows: number }[]>`
  with candidate as materialized (
    select t.ctid as place, t.time_stamp, t.traffic_in_out_ip
    from traffic t
    where ${isYoung(sql, config.peerLateResolveWindowSecs)} and ${isOpen(sql)}
    order by t.time_stamp, t.uuid
    limit ${MAX_TRIED})
  select count(*)::int as rows from (${peers(sql)}) r`,
    )
    return row!.rows
  },
}
