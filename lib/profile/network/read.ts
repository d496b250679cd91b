/** Reads the flows and verdicts of a workload (docs/contract.md#workload-profiles). */
import { fixed, type Gate } from '../../db/index.ts'
import type { WorkloadKey } from '../built.ts'

/** Edges that are read; a workload with more is `truncated`. */
export const MAX_EDGES = 10_000
export const AUDIT_HOURS = 24

/** Flows of one direction, protocol, port and peer, over all pods of the workload. Times are RFC 3339 with `Z`. */
export interface EdgeRow {
  readonly is_ingress: boolean
  readonly protocol: string
  /** As reported. */
  readonly port: string | null
  /** Null for an address that no pod, service or node has. */
  readonly peer_kind: string | null
  readonly peer_namespace: string | null
  readonly peer_workload_kind: string | null
  readonly peer_workload_name: string | null
  /** Of a service, or of a pod without a known workload. */
  readonly peer_name: string | null
  /** Of a node, or of an address without a name. */
  readonly ip: string | null
  readonly flows: number
  readonly first_seen: string
  readonly last_seen: string
}

const PEER = ['peer_kind', 'peer_namespace', 'peer_workload_kind', 'peer_workload_name', 'peer_name']
const COLUMNS = [
  ...['traffic_type', 'ip_protocol', 'port', ...PEER, 'traffic_in_out_ip', 'pod_name'],
  ...['pod_namespace', 'pod_workload_kind', 'pod_workload_name'],
]
const columns = (alias: string) => COLUMNS.map((name) => `${alias}.${name}`).join(', ')

// A flow that was stored before the workload of its pod was known has the pod only.
const ROWS = `
  select ${columns('e')}, e.flows, e.first_seen_at, e.last_new_at
  from asked a
  join flow_edge e on e.pod_namespace = a.namespace and e.pod_workload_kind = a.kind and e.pod_workload_name = a.name
  union all
  select ${columns('e')}, e.flows, e.first_seen_at, e.last_new_at
  from asked a
  cross join pods p
  join flow_edge e on e.pod_namespace = a.namespace and e.pod_workload_kind is null and e.pod_workload_name is null
                  and e.pod_name = p.pod_name
  union all
  select ${columns('e')}, 1, e.time_stamp, e.time_stamp
  from asked a
  join flow_edge_pending e on e.pod_namespace = a.namespace
  where (e.pod_workload_kind, e.pod_workload_name) = (a.kind, a.name)
     or e.pod_workload_name is null and exists (select from pods p where p.pod_name = e.pod_name)`

/** The pods of the workload, dead ones too. */
export const PODS = `
  pods as materialized (
    select p.pod_name, p.pod_uid, p.is_dead
    from asked a
    join pod p on p.pod_namespace = a.namespace and p.workload_kind = a.kind and p.workload_name = a.name
    union
    select p.pod_name, p.pod_uid, p.is_dead
    from asked a
    join pod p on a.kind = 'Pod' and p.pod_name = a.name and p.pod_namespace = a.namespace
              and not is_owned(p.workload_kind, p.workload_name))`

const ORDER = `is_ingress desc, protocol, length(port), port, peer_namespace, peer_workload_kind,
           coalesce(peer_workload_name, peer_name), ip, peer_kind`

const EDGES = fixed<EdgeRow[]>(`
  with asked as materialized (select $1::text as namespace, $2::text as kind, $3::text as name),
  ${PODS},
  edges as (
    select r.traffic_type = 'INGRESS' as is_ingress, coalesce(nullif(r.ip_protocol, ''), 'TCP') as protocol, r.port,
           r.peer_kind, r.peer_namespace, coalesce(r.peer_workload_kind, w.workload_kind) as peer_workload_kind,
           coalesce(r.peer_workload_name, w.workload_name) as peer_workload_name,
           case when r.peer_kind = 'service' or coalesce(r.peer_workload_name, w.workload_name) is null
                then r.peer_name end as peer_name,
           r.traffic_in_out_ip as ip, r.flows, r.first_seen_at, r.last_new_at
    from (${ROWS}) r
    -- without offset 0, PostgreSQL 15 reads all pods for each row
    left join lateral (
      select w.* from pod_of_flow(case when r.peer_kind = 'pod' and r.peer_workload_name is null then r.peer_name end) w
      offset 0) w on w.pod_namespace = r.peer_namespace)
  select e.is_ingress, e.protocol, e.port, e.peer_kind, e.peer_namespace, e.peer_workload_kind, e.peer_workload_name,
         e.peer_name, e.ip, sum(e.flows)::float8 as flows, wire_time(min(e.first_seen_at)) || 'Z' as first_seen,
         wire_time(max(e.last_new_at)) || 'Z' as last_seen
  from edges e
  group by e.is_ingress, e.protocol, e.port, e.peer_kind, e.peer_namespace, e.peer_workload_kind, e.peer_workload_name,
           e.peer_name, e.ip
  order by ${ORDER}
  limit ${MAX_EDGES + 1}`)

/** At most `MAX_EDGES` and one more, ingress first. */
export const readEdges = (gate: Gate, { namespace, kind, name }: WorkloadKey): Promise<EdgeRow[]> =>
  gate((sql) => EDGES(sql, namespace, kind, name))

/** A pod or a service of a peer, and its address. */
export interface PeerExample {
  readonly name: string
  readonly ip: string
}

// Of a workload the newest pod, a living one if there is any.
const EXAMPLES = fixed<(PeerExample & { n: number })[]>(`
  with asked as materialized (select $1::text::json as peers)
  select k.n::float8 as n, f.name, f.ip
  from asked a
  cross join json_to_recordset(a.peers)
    as k(n bigint, kind text, namespace text, workload_kind text, workload text, name text)
  cross join lateral (
    (select p.pod_name as name, p.pod_ip as ip
     from pod p
     where k.kind = 'pod' and p.pod_namespace = k.namespace and p.workload_kind = k.workload_kind
       and p.workload_name = k.workload
     order by p.is_dead, p.time_stamp desc, p.pod_name
     limit 1)
    union all
    (select p.pod_name, p.pod_ip
     from pod p
     where k.kind = 'pod' and p.pod_namespace = k.namespace and p.pod_name = coalesce(k.name, k.workload)
       and (k.name is not null or k.workload_kind = 'Pod'))
    union all
    (select s.svc_name, s.svc_ip
     from service s
     where k.kind = 'service' and s.svc_namespace = k.namespace and s.svc_name = k.name
     order by s.svc_ip
     limit 1)) f`)

/** For each peer that is a pod or a service an example, as far as one is known. */
export async function readExamples(gate: Gate, peers: readonly EdgeRow[]): Promise<Map<EdgeRow, PeerExample>> {
  const named = peers.map((peer, n) => ({
    n,
    kind: peer.peer_kind,
    namespace: peer.peer_namespace,
    workload_kind: peer.peer_workload_kind,
    workload: peer.peer_workload_name,
    name: peer.peer_name,
  }))
  const rows = await gate((sql) => EXAMPLES(sql, JSON.stringify(named)))
  return new Map(rows.map(({ n, name, ip }) => [peers[n]!, { name, ip }]))
}

/** The verdicts on a policy. */
export interface AuditRow {
  readonly namespace: string
  readonly name: string
  readonly allow: number
  readonly would_deny: number
  readonly last_verdict: string
}

/** Rows past their retention may still be there. */
const AUDIT = fixed<AuditRow[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text as kind, $3::text as name,
           greatest(now() at time zone 'utc' - interval '${AUDIT_HOURS} hours', retention_start($4::integer)) as since),
  ${PODS},
  verdicts as (
    select v.id, v.policy_namespace, v.policy_name, v.verdict, v.observed_at
    from asked a
    cross join pods p
    join audit_verdict v on v.src_namespace = a.namespace and v.src_pod = p.pod_name and v.observed_at >= a.since
    union
    select v.id, v.policy_namespace, v.policy_name, v.verdict, v.observed_at
    from asked a
    cross join pods p
    join audit_verdict v on v.dst_namespace = a.namespace and v.dst_pod = p.pod_name and v.observed_at >= a.since)
  select v.policy_namespace as namespace, v.policy_name as name,
         (count(*) filter (where v.verdict = 'Allow'))::float8 as allow,
         (count(*) filter (where v.verdict = 'WouldDeny'))::float8 as would_deny,
         wire_time(max(v.observed_at)) || 'Z' as last_verdict
  from verdicts v
  group by v.policy_namespace, v.policy_name
  order by v.policy_namespace, v.policy_name`)

/** The verdicts of the last 24 hours that name a pod of the workload, by policy. */
export const readAudit = (
  gate: Gate,
  { namespace, kind, name }: WorkloadKey,
  retentionDays: number,
): Promise<AuditRow[]> => gate((sql) => AUDIT(sql, namespace, kind, name, retentionDays))
