/** Reads the edges that the pods of workloads reported (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import type { Edge, EdgeRecord } from '../edges.ts'
import { type OfEach, ofEach, WORKLOADS, type WorkloadName, workloadsJson } from './workloads.ts'

/** Edges of a workload that are read; one with more is `too_many`. */
export const MAX_EDGES = 10_000

type Facts = Omit<EdgeRecord, 'isRecorded'>

interface Row {
  readonly n: number
  readonly edges: readonly Edge[]
  readonly observed_since: string | null
  readonly are_flows_counted: boolean
  readonly kept_since: string | null
}

const EDGE = [
  ...['traffic_type', 'ip_protocol', 'port', 'decision', 'peer_kind', 'peer_namespace', 'peer_workload_kind'],
  ...['peer_workload_name', 'peer_name', 'traffic_in_out_ip', 'is_public'],
]
const columns = EDGE.map((name) => `e.${name}`).join(', ')

/** Whether a pod that reported the edge `e` may live: the sweep marks pods dead whose agent fell silent. */
const MAY_LIVE = `exists (
        select from flow_edge_pod p
        cross join lateral (
          select from pod o where o.pod_name = p.pod_name and (not o.is_dead or o.swept_at is not null) offset 0) o
        where p.edge_id = e.id offset 0)`

// A flow that was stored before the workload of its pod was known has the pod only. Reporters matter only where the
// newest flow is older than the range.
const READ = fixed<Row[]>(`
  with asked as materialized (
    select $1::text as namespace, $2::text::json as workloads, $3::text::timestamp as since,
           nullif(retention_start($4::integer), '-infinity') as kept_since),
  ${WORKLOADS},
  pods as materialized (
    select k.n, p.pod_name
    from asked a
    cross join workloads k
    join pod p on p.pod_namespace = a.namespace and p.workload_kind = k.kind and p.workload_name = k.name
    union
    select k.n, p.pod_name
    from asked a
    cross join workloads k
    join pod p on k.kind = 'Pod' and p.pod_name = k.name and p.pod_namespace = a.namespace
              and not is_owned(p.workload_kind, p.workload_name)),
  rows as materialized (
    select k.n, ${columns}, e.first_seen_at, e.last_new_at, e.last_new_at <= a.since and ${MAY_LIVE} as may_live
    from asked a
    cross join workloads k
    cross join lateral (
      select e.* from flow_edge e
      where e.pod_namespace = a.namespace and e.pod_workload_kind = k.kind and e.pod_workload_name = k.name
      offset 0) e
    union all
    select p.n, ${columns}, e.first_seen_at, e.last_new_at, e.last_new_at <= a.since and ${MAY_LIVE}
    from asked a
    cross join pods p
    cross join lateral (
      select e.* from flow_edge e
      where e.pod_namespace = a.namespace and e.pod_workload_kind is null and e.pod_workload_name is null
        and e.pod_name = p.pod_name
      offset 0) e
    union all
    select k.n, ${columns}, e.time_stamp, e.time_stamp, true
    from asked a
    join flow_edge_pending e on e.pod_namespace = a.namespace
    join workloads k on (e.pod_workload_kind, e.pod_workload_name) = (k.kind, k.name)
                     or e.pod_workload_name is null and exists (
                          select from pods p where p.n = k.n and p.pod_name = e.pod_name)),
  edges as materialized (
    select r.n, r.traffic_type = 'INGRESS' as is_ingress, coalesce(nullif(r.ip_protocol, ''), 'TCP') as protocol,
           r.port, r.decision, r.peer_kind, r.peer_namespace,
           coalesce(r.peer_workload_kind, w.workload_kind) as peer_workload_kind,
           coalesce(r.peer_workload_name, w.workload_name) as peer_workload_name,
           case when r.peer_kind = 'service' or coalesce(r.peer_workload_name, w.workload_name) is null
                then r.peer_name end as peer_name,
           r.traffic_in_out_ip as ip, r.is_public, min(r.first_seen_at) as first_seen_at,
           max(r.last_new_at) as last_new_at, bool_or(r.may_live) as may_live
    from rows r
    left join lateral pod_of_flow(case when r.peer_kind = 'pod' and r.peer_workload_name is null then r.peer_name end) w
      on w.pod_namespace = r.peer_namespace
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
  select k.n, f.edges, wire_time(o.first_seen_at) as observed_since, c.as_of is not null as are_flows_counted,
         wire_time(a.kept_since) as kept_since
  from asked a
  cross join workloads k
  cross join flow_edge_cursor c
  left join lateral (select e.first_seen_at from flow_edge e order by e.first_seen_at limit 1) o on true
  cross join lateral (
    select coalesce(json_agg(json_build_object(
             'direction', case when e.is_ingress then 'ingress' else 'egress' end, 'protocol', e.protocol,
             'port', e.port, 'verdict', e.decision,
             'peer', json_build_object(
               'kind', coalesce(e.peer_kind, case when e.is_public then 'external' else 'unresolved' end),
               'namespace', e.peer_namespace, 'workloadKind', e.peer_workload_kind,
               'workloadName', e.peer_workload_name, 'name', e.peer_name, 'ip', e.ip),
             'firstSeenAt', wire_time(e.first_seen_at), 'lastNewAt', wire_time(e.last_new_at),
             'mayLive', e.may_live)), '[]') as edges
    from (select e.* from edges e where e.n = k.n limit ${MAX_EDGES + 1}) e) f`)

/**
 * Reads the edges of each of these workloads of a namespace. `since` is the text of a time: `mayLive` is found for
 * edges without a newer flow.
 */
export async function readEdgeRecords(
  gate: Gate,
  namespace: string,
  workloads: readonly WorkloadName[],
  since: string,
  retentionDays: number,
): Promise<OfEach<Facts>> {
  const rows = await gate((sql) => READ(sql, namespace, workloadsJson(workloads), since, retentionDays))
  return ofEach(
    workloads,
    rows,
    (row): Facts => ({
      edges: row.edges.slice(0, MAX_EDGES),
      isCut: row.edges.length > MAX_EDGES,
      observedSince: row.observed_since,
      areFlowsCounted: row.are_flows_counted,
      keptSince: row.kept_since,
    }),
    (): Facts => ({ edges: [], isCut: false, observedSince: null, areFlowsCounted: false, keptSince: null }),
  )
}
