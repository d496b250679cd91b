import type { Sql } from '../lib/db/index.ts'
import { inBatches, type Job } from './job.ts'
import { held } from './locks.ts'

/**
 * Flows without a peer that a pass tries to resolve, the oldest first; and as many again that lack only their own
 * workload: agents that send no workloads must not keep peers from being resolved.
 */
const MAX_TRIED = 20_000
/** Limit of one statement. */
const MAX_TRIED_AT_ONCE = 1_000
/** Rows that one statement reads, complete or not. */
const MAX_READ_AT_ONCE = 5_000
/** Ten million rows. */
const MAX_BATCHES = 2_000

/** The last flow examined; a null time stands for the start of the window. */
interface Cursor {
  time: string | null
  uuid: string
}

interface TriedBatch extends Cursor {
  is_held: boolean
  /** Flows tried without a peer, and those that lacked only their workload. */
  peers: number
  others: number
  rows: number
}

const START: Cursor = { time: null, uuid: '' }

// A single bound: given two, an index scan starts at the earlier one.
const isAfter = (sql: Sql, after: Cursor, windowSecs: number) => sql`
    (t.time_stamp, t.uuid)
      > (coalesce(${after.time}::text::timestamp, now() at time zone 'utc' - make_interval(secs => ${windowSecs})),
         ${after.uuid})`

/** The sides of `traffic t` that a pass may resolve, the peer and the pod; null where a side is known. */
const open = (sql: Sql) => sql`
    case when t.peer_kind is null then t.traffic_in_out_ip end as peer_ip,
    case when t.pod_workload_name is null and t.pod_namespace is not null then t.pod_name end as pod_name,
    t.pod_namespace`

/**
 * The flows of `candidate` of which more is known by now, resolved as at ingest: a pod before a service, at the time of
 * the flow (docs/contract.md#attribution). Null for a side that stays as it is.
 */
const resolved = (sql: Sql) => sql`
    select c.place,
           case when p.pod_name is not null then case when p.host_network then 'node' else 'pod' end
                when s.svc_ip is not null then 'service' end as kind,
           case when p.pod_name is null then s.svc_namespace else p.pod_namespace end as namespace,
           coalesce(p.pod_name, s.svc_name) as name,
           case when p.pod_name is null then s.svc_uid else p.pod_uid end as uid,
           p.workload_kind, p.workload_name,
           o.workload_kind as own_kind, o.workload_name as own_name
    from candidate c
    left join lateral pod_at_address(c.peer_ip, c.time_stamp) p on true
    left join service s on p.pod_name is null and s.svc_ip = c.peer_ip
    left join lateral pod_of_flow(c.pod_name) o on o.pod_namespace = c.pod_namespace and o.started_at <= c.time_stamp
    where p.pod_name is not null or s.svc_ip is not null or o.workload_name is not null`

/**
 * Resolves the peers and the workloads of recent flows that were not known at ingest (docs/contract.md#attribution).
 * A resolved field is never changed.
 *
 * Two measures keep a statement short whatever the planner estimates. Rows are read by time under a limit before they
 * are filtered: by the share of flows without a peer, of which statistics may be outdated, the planner would rather
 * read and sort the whole window each time. Rows are updated by ctid, not by key; a row that moved is left to the next
 * pass.
 */
export const lateResolve: Job = {
  name: 'late-resolve',
  everySecs: (config) => (config.peerLateResolveWindowSecs === 0 ? null : config.peerLateResolveIntervalSecs),

  async run({ config, db, signal }) {
    const windowSecs = config.peerLateResolveWindowSecs
    let after = START
    let peersTried = 0
    let othersTried = 0
    const pass = await inBatches(signal, MAX_BATCHES, async () => {
      const maxTried = Math.min(MAX_TRIED_AT_ONCE, MAX_TRIED - peersTried)
      // Not in the last statements, whose limit may be one flow.
      const triesOthers = maxTried === MAX_TRIED_AT_ONCE && othersTried <= MAX_TRIED - MAX_TRIED_AT_ONCE
      const [batch] = await db.job(
        (sql) => sql<TriedBatch[]>`
  with ${held(sql, 'late-resolve')},
  candidate as materialized (
    select t.*
    from (select t.ctid as place, t.uuid, t.time_stamp, ${open(sql)}
          from traffic t
          where ${isAfter(sql, after, windowSecs)}
          order by t.time_stamp, t.uuid
          limit ${MAX_READ_AT_ONCE}) t
    where (select is_held from held) and (t.peer_ip is not null or ${triesOthers} and t.pod_name is not null)
    order by t.time_stamp, t.uuid
    limit ${maxTried}),
  stamped as (
    update traffic t
    set peer_kind          = coalesce(t.peer_kind, r.kind),
        peer_namespace     = coalesce(t.peer_namespace, r.namespace),
        peer_name          = coalesce(t.peer_name, r.name),
        peer_uid           = coalesce(t.peer_uid, r.uid),
        peer_workload_kind = coalesce(t.peer_workload_kind, r.workload_kind),
        peer_workload_name = coalesce(t.peer_workload_name, r.workload_name),
        peer_resolved_at   = case when r.kind is null then t.peer_resolved_at else now() at time zone 'utc' end,
        pod_workload_kind  = coalesce(t.pod_workload_kind, r.own_kind),
        pod_workload_name  = coalesce(t.pod_workload_name, r.own_name),
        first_tx           = coalesce(t.first_tx, t.tx),
        tx                 = pg_current_xact_id()
    from (${resolved(sql)}) r
    where t.ctid = r.place
    returning t.uuid)
  select h.is_held,
         (select count(c.peer_ip)::int from candidate c)                 as peers,
         (select count(*)::int from candidate c where c.peer_ip is null) as others,
         (select count(*)::int from stamped)                             as rows,
         coalesce(c.time_stamp, t.time_stamp)::text as time, coalesce(c.uuid, t.uuid) as uuid
  from held h
  left join lateral ( -- the last candidate of a full batch
    select c.time_stamp, c.uuid from candidate c order by c.time_stamp, c.uuid offset ${maxTried - 1} limit 1) c on true
  left join lateral ( -- else the last row of a full read; else the window is at its end
    select t.time_stamp, t.uuid from traffic t
    where c.uuid is null and h.is_held and ${isAfter(sql, after, windowSecs)}
    order by t.time_stamp, t.uuid offset ${MAX_READ_AT_ONCE - 1} limit 1) t on true`,
      )
      const { is_held, rows, time, uuid } = batch!
      peersTried += batch!.peers
      othersTried += batch!.others
      if (time !== null && uuid !== null) after = { time, uuid }
      return { isHeld: is_held, rows, isLast: time === null || peersTried >= MAX_TRIED }
    })
    const isCapped = peersTried >= MAX_TRIED || othersTried > MAX_TRIED - MAX_TRIED_AT_ONCE
    return pass.outcome === 'done' && isCapped ? { ...pass, outcome: 'capped' } : pass
  },

  async count({ config, db }) {
    const [row] = await db.job(
      (sql) => sql<{ rows: number }[]>`
  with candidate as materialized (
    select t.*
    from (select t.*, count(t.peer_ip) over so_far as peers, count(*) over so_far as tried
          from (select t.ctid as place, t.uuid, t.time_stamp, ${open(sql)}
                from traffic t
                where ${isAfter(sql, START, config.peerLateResolveWindowSecs)}) t
          where t.peer_ip is not null or t.pod_name is not null
          window so_far as (order by t.time_stamp, t.uuid)) t
    where t.peers <= ${MAX_TRIED} and (t.peer_ip is not null or t.tried - t.peers <= ${MAX_TRIED}))
  select count(*)::int as rows from (${resolved(sql)}) r`,
    )
    return row!.rows
  },
}
