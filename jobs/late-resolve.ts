import type { Sql } from '../lib/db/index.ts'
import { inBatches, type Job } from './job.ts'
import { held } from './locks.ts'

const BATCH_ROWS = 1_000
/** A pass looks at 20 000 flows, the oldest, whether or not they get a peer (interop-core 7.1). */
const MAX_BATCHES = 20

/** Where a pass has got to: every flow up to this one has been looked at. No time: it begins at the start of the window. */
interface Cursor {
  time: string | null
  uuid: string
}

const START: Cursor = { time: null, uuid: '' }

/**
 * Flows that may still get a peer, oldest first. "offset 0" has the table read by its index on time: by the share of flows
 * without a peer, of which it may have stale numbers, the planner may prefer to read and sort the whole table in every batch.
 * One bound and not two: of two, an index scan begins at the earlier.
 */
const candidates = (sql: Sql, windowSecs: number, after: Cursor, maxRows: number) => sql`
    select t.place, t.uuid, t.time_stamp, t.traffic_in_out_ip
    from (select t.ctid as place, t.uuid, t.time_stamp, t.traffic_in_out_ip, t.peer_kind
          from traffic t
          where (t.time_stamp, t.uuid)
              > (coalesce(${after.time}::text::timestamp, now() at time zone 'utc' - make_interval(secs => ${windowSecs})), ${after.uuid})
          order by t.time_stamp, t.uuid
          offset 0) t
    where t.peer_kind is null and t.traffic_in_out_ip is not null
    order by t.time_stamp, t.uuid
    limit ${maxRows}`

/** The peers of those that have one by now, as at ingest: a pod before a service, by the flow's own time (interop-core 2.2). */
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
 * Rows are updated by their place, for by key the planner may again read the whole table; a row that has moved since is left
 * to the next pass.
 */
export const lateResolve: Job = {
  name: 'late-resolve',
  everySecs: (config) => (config.peerLateResolveWindowSecs === 0 ? null : config.peerLateResolveIntervalSecs),

  async run({ config, db, signal }) {
    let after = START
    return inBatches(signal, MAX_BATCHES, async () => {
      const [batch] = await db.probe(
        (sql) => sql<{ is_held: boolean; found: number; rows: number; time: string | null; uuid: string | null }[]>`
  with ${held(sql, 'late-resolve')},
  candidate as materialized (
    select * from (${candidates(sql, config.peerLateResolveWindowSecs, after, BATCH_ROWS)}) c where (select is_held from held)),
  stamped as (
    update traffic t
    set peer_kind = r.kind, peer_namespace = r.namespace, peer_name = r.name, peer_uid = r.uid,
        peer_workload_kind = r.workload_kind, peer_workload_name = r.workload_name, peer_resolved_at = now() at time zone 'utc'
    from (${peers(sql)}) r
    where t.ctid = r.place and t.peer_kind is null
    returning t.uuid)
  select h.is_held, (select count(*)::int from candidate) as found, (select count(*)::int from stamped) as rows,
         last.time_stamp::text as time, last.uuid
  from held h
  left join lateral (select c.time_stamp, c.uuid from candidate c order by c.time_stamp desc, c.uuid desc limit 1) last on true`,
      )
      const { is_held, found, rows, time, uuid } = batch!
      if (time !== null && uuid !== null) after = { time, uuid }
      return { isHeld: is_held, rows, isLast: found < BATCH_ROWS }
    })
  },

  async count({ config, db }) {
    const [row] = await db.probe(
      (sql) => sql<{ rows: number }[]>`
  with candidate as materialized (${candidates(sql, config.peerLateResolveWindowSecs, START, BATCH_ROWS * MAX_BATCHES)})
  select count(*)::int as rows from (${peers(sql)}) r`,
    )
    return row!.rows
  },
}
