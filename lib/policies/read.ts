/** Reads the facts for policies: edges of flows, pods and services (docs/contract.md#network-policies). */
import { fixed, type Gate } from '../db/index.ts'
import { HttpError } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import { FIRST_SEEN_AT } from '../flows/index.ts'
import { fromPostgres } from '../time/timestamp.ts'
import type { Connection, End, PodGroup, Service, ServicePort, Watched, Workload } from './facts.ts'
import type { Labels } from './policy.ts'

/** Edges of one answer at most. */
export const MAX_EDGES = 100_000
/** Memory that the facts of so many edges take. */
export const FACTS_BYTES = 64 * 1024 * 1024

/** The window of edges, as texts of PostgreSQL. */
export interface Window {
  readonly since: string
  readonly until: string
}

/** The part of the cluster whose connections are read: all of it, a namespace or a workload. */
export type Part = null | { readonly namespace: string } | Workload

/** Facts about the edges as a whole. */
export interface EdgeFacts {
  /** All flows that were stored by then are counted; null while they are counted for the first time. */
  readonly asOf: string | null
  /** Edges are complete from here on; null where there is none. */
  readonly observedSince: string | null
  /** The clock of the database. */
  readonly now: string
}

const EDGE_FACTS = fixed<{ as_of: string | null; observed_since: string | null; moment: string }[]>(`
  with asked as (select $1::text::timestamp as since, $2::int as retention_days, now() at time zone 'utc' as moment)
  select c.as_of::text, a.moment::text,
         case when e.first_seen_at is not null then greatest(e.first_seen_at, a.since,
                a.moment - make_interval(days => nullif(a.retention_days, 0))) end::text as observed_since
  from asked a
  cross join flow_edge_cursor c
  cross join (select ${FIRST_SEEN_AT} as first_seen_at) e`)

export async function readEdgeFacts(gate: Gate, since: string, retentionDays: number): Promise<EdgeFacts> {
  const [row] = await gate((sql) => EDGE_FACTS(sql, since, retentionDays))
  const { as_of: asOf, observed_since: observedSince, moment } = row!
  return {
    asOf: asOf === null ? null : fromPostgres(asOf),
    observedSince: observedSince === null ? null : fromPostgres(observedSince),
    now: fromPostgres(moment),
  }
}

/**
 * A flow does not know the workload of a pod that was posted without one; the record of the pod may know it by now.
 * Connections to the services of the namespace are read, too.
 */
const CONNECTIONS = fixed<{ edge: string }[]>(`
  with asked as materialized (
    select $1::text::timestamp as since, $2::text::timestamp as until, $3::text as namespace, $4::text as kind,
           $5::text as name),
  edges as (
    select t.*, coalesce(t.pod_workload_kind, o.workload_kind) as own_kind,
           coalesce(t.pod_workload_name, o.workload_name) as own_workload,
           coalesce(t.peer_workload_kind, q.workload_kind) as other_kind,
           coalesce(t.peer_workload_name, q.workload_name) as other_workload
    from asked a
    cross join lateral (
      select e.traffic_type, e.pod_namespace, e.pod_workload_kind, e.pod_workload_name, e.pod_name, e.peer_kind,
             e.peer_namespace, e.peer_workload_kind, e.peer_workload_name, e.peer_name, e.traffic_in_out_ip,
             e.is_public, e.port, e.ip_protocol, e.decision, e.flows, e.first_seen_at, e.last_new_at, e.id
      from flow_edge e
      union all
      select p.traffic_type, p.pod_namespace, p.pod_workload_kind, p.pod_workload_name, p.pod_name, p.peer_kind,
             p.peer_namespace, p.peer_workload_kind, p.peer_workload_name, p.peer_name, p.traffic_in_out_ip,
             p.is_public, p.port, p.ip_protocol, p.decision, 1, p.time_stamp, p.time_stamp, null
      from flow_edge_pending p) t
    left join lateral pod_of_flow(case when t.pod_workload_name is null then t.pod_name end) o
      on o.pod_namespace = t.pod_namespace
    left join lateral pod_of_flow(case when t.peer_kind = 'pod' and t.peer_workload_name is null then t.peer_name end) q
      on q.pod_namespace = t.peer_namespace
    where t.last_new_at >= a.since and t.first_seen_at < a.until and t.decision in ('ALLOW', 'DROP')
      and t.pod_namespace is not null)
  select json_build_object(
           'isEgress', t.traffic_type = 'EGRESS', 'namespace', t.pod_namespace, 'kind', t.own_kind,
           'workload', t.own_workload, 'pod', t.pod_name,
           'peerType', coalesce(t.peer_kind, case when t.is_public then 'external' else 'unresolved' end),
           'peerNamespace', t.peer_namespace, 'peerKind', t.other_kind, 'peerWorkload', t.other_workload,
           'peerName', t.peer_name, 'ip', t.traffic_in_out_ip, 'port', t.port, 'protocol', t.ip_protocol,
           'isDropped', t.decision = 'DROP', 'flows', t.flows, 'firstSeenAt', t.first_seen_at::text,
           'lastNewAt', t.last_new_at::text, 'id', t.id)::text as edge
  from asked a
  cross join edges t
  where a.namespace is null
     or t.peer_kind = 'service' and t.peer_namespace = a.namespace
     or a.name is null and (t.pod_namespace = a.namespace
                            or t.peer_kind = 'pod' and t.peer_namespace = a.namespace)
     or (t.pod_namespace, t.own_kind, t.own_workload) = (a.namespace, a.kind, a.name)
     or t.peer_kind = 'pod'
        and (t.peer_namespace, t.other_kind, t.other_workload) = (a.namespace, a.kind, a.name)
  limit ${MAX_EDGES + 1}`)

type PeerType = 'pod' | 'service' | 'node' | 'external' | 'unresolved'

interface Edge {
  readonly isEgress: boolean
  readonly namespace: string
  readonly kind: string | null
  readonly workload: string | null
  readonly pod: string | null
  readonly peerType: PeerType
  readonly peerNamespace: string | null
  readonly peerKind: string | null
  readonly peerWorkload: string | null
  readonly peerName: string | null
  readonly ip: string | null
  readonly port: string | null
  readonly protocol: string | null
  readonly isDropped: boolean
  readonly flows: number
  readonly firstSeenAt: string
  readonly lastNewAt: string
  readonly id: string | null
}

/**
 * The connections of a part of the cluster in a window. Equal ends are one object.
 * @throws HttpError 400 if there are more than `MAX_EDGES`
 */
export async function readConnections(gate: Gate, { since, until }: Window, part: Part): Promise<Connection[]> {
  const { namespace = null, kind = null, name = null } = (part ?? {}) as Partial<Workload>
  const rows = await gate((sql) => CONNECTIONS(sql, since, until, namespace, kind, name))
  if (rows.length > MAX_EDGES)
    throw new HttpError(400, `more than ${MAX_EDGES} edges: narrow them with since, until or namespace`)
  const ends = new Map<string, End>()
  const shared = (end: End) => {
    const key = JSON.stringify(end)
    const known = ends.get(key)
    if (known === undefined) ends.set(key, end)
    return known ?? end
  }
  const connections: Connection[] = []
  const slice = new Slice()
  for (const { edge } of rows) {
    if (slice.isOver) await slice.next()
    connections.push(connectionOf(JSON.parse(edge), shared))
  }
  return connections
}

function connectionOf(edge: Edge, shared: (end: End) => End): Connection {
  const { isEgress, port, protocol, isDropped, flows, firstSeenAt, lastNewAt, id } = edge
  const own = shared(podEnd(edge.namespace, edge.kind, edge.workload, edge.pod))
  const peer = shared(peerEnd(edge))
  return {
    from: isEgress ? own : peer,
    to: isEgress ? peer : own,
    port: port ?? '',
    protocol: protocol ?? '',
    isDropped,
    seenBy: isEgress ? 'from' : 'to',
    flows,
    firstSeenAt: fromPostgres(firstSeenAt),
    lastNewAt: fromPostgres(lastNewAt),
    edgeId: id,
  }
}

function peerEnd({ peerType: type, peerNamespace, peerKind, peerWorkload, peerName, ip }: Edge): End {
  if (type === 'pod') return podEnd(peerNamespace, peerKind, peerWorkload, peerName)
  return type === 'service' ? { type, namespace: peerNamespace ?? '', name: peerName ?? '' } : { type, ip }
}

const podEnd = (namespace: string | null, kind: string | null, workload: string | null, pod: string | null): End =>
  kind !== null && workload !== null
    ? { type: 'workload', namespace: namespace ?? '', kind, name: workload }
    : { type: 'pod', namespace: namespace ?? '', name: pod ?? '' }

/** The namespaces of the ends of connections. */
export const namespacesOf = (connections: readonly Connection[]): string[] => [
  ...new Set(
    connections.flatMap(({ from, to }) => [from, to].flatMap((end) => ('namespace' in end ? end.namespace : []))),
  ),
]

/**
 * Pods by what policies can tell of them. Of a pod without a known workload its own name is the workload, of the kind
 * Pod. A pod that was posted without a manifest has at least the labels that select its workload; one without either is
 * left out.
 */
const PODS = fixed<{ pods: string }[]>(`
  with asked as materialized (
    select array(select json_array_elements_text($1::text::json)) as namespaces, k.keys is null as is_all,
           array(select json_array_elements_text(coalesce(k.keys, '[]'))) as keys
    from (select $2::text::json as keys) k),
  pods as materialized (
    select p.pod_namespace, case when w.is_known then p.workload_kind else 'Pod' end as kind,
           case when w.is_known then p.workload_name else p.pod_name end as name,
           case when a.is_all then l.labels
                else (select coalesce(jsonb_object_agg(v.key, v.value), '{}') from jsonb_each(l.labels) v
                      where v.key = any (a.keys)) end as labels, k.labels is null as has_partial_labels,
           p.workload_selector_labels::text as selector, p.named_ports, p.host_network, not p.is_dead as is_living,
           array_to_string(p.pod_ips, ',') as ips, p.time_stamp
    from asked a
    join pod p on p.pod_namespace = any (a.namespaces)
    cross join lateral (select ltrim(p.workload_kind) <> '' and ltrim(p.workload_name) <> '' as is_known) w
    left join lateral (
      select l.labels from pod_labels l where l.pod_namespace = p.pod_namespace and l.pod_name = p.pod_name
      order by l.since desc limit 1) k on true
    cross join lateral (select coalesce(k.labels, p.workload_selector_labels::jsonb) as labels) l
    where l.labels is not null)
  select json_build_object(
           'workload', json_build_object('namespace', p.pod_namespace, 'kind', p.kind, 'name', p.name),
           'labels', p.labels, 'hasPartialLabels', p.has_partial_labels, 'selectorLabels', p.selector::json,
           'namedPorts', p.named_ports,
           'isHostNetwork', p.host_network, 'isLiving', p.is_living, 'ips', string_agg(p.ips, ','),
           'postedAt', max(p.time_stamp)::text)::text as pods
  from pods p
  group by p.pod_namespace, p.kind, p.name, p.labels, p.has_partial_labels, p.selector, p.named_ports, p.host_network,
           p.is_living`)

/**
 * The pods of namespaces, with those of their labels that are among `keys`, or with all of them. `postedAt` is the
 * newest post, null where there is no pod.
 */
export async function readPods(
  gate: Gate,
  namespaces: readonly string[],
  keys: readonly string[] | null,
): Promise<{ pods: PodGroup[]; postedAt: string | null }> {
  const wanted = keys === null ? null : JSON.stringify(keys)
  const rows = await gate((sql) => PODS(sql, JSON.stringify(namespaces), wanted))
  const pods: PodGroup[] = []
  let newest = ''
  const slice = new Slice()
  for (const row of rows) {
    if (slice.isOver) await slice.next()
    const { ips, postedAt, ...group } = JSON.parse(row.pods) as PodGroup & { ips: string | null; postedAt: string }
    pods.push({ ...group, ips: ips === null || ips === '' ? [] : ips.split(',') })
    if (postedAt > newest) newest = postedAt
  }
  return { pods, postedAt: newest === '' ? null : fromPostgres(newest) }
}

/** A service may have several addresses; the newest record has its ports. */
const SERVICES = fixed<{ service: string }[]>(`
  with asked as materialized (select array(select json_array_elements_text($1::text::json)) as namespaces)
  select distinct on (s.svc_namespace, s.svc_name)
         json_build_object('namespace', s.svc_namespace, 'name', s.svc_name,
                           'selector', s.service_spec #> '{spec,selector}',
                           'ports', s.service_spec #> '{spec,ports}')::text as service
  from asked a
  join service s on s.svc_namespace = any (a.namespaces)
  where s.svc_name is not null
  order by s.svc_namespace, s.svc_name, s.time_stamp desc, s.svc_ip`)

/** The services of namespaces. */
export async function readServices(gate: Gate, namespaces: readonly string[]): Promise<Service[]> {
  const rows = await gate((sql) => SERVICES(sql, JSON.stringify(namespaces)))
  return rows.map(({ service }) => {
    const { namespace, name, selector, ports } = JSON.parse(service)
    return { namespace, name, selector: selectorOf(selector), ports: portsOf(ports) }
  })
}

/** Specifications of services are stored as they were posted. */
function selectorOf(posted: unknown): Labels | null {
  if (typeof posted !== 'object' || posted === null || Array.isArray(posted)) return null
  const entries = Object.entries(posted)
  const isValid = entries.length > 0 && entries.every(([, value]) => typeof value === 'string')
  return isValid ? (posted as Labels) : null
}

function portsOf(posted: unknown): ServicePort[] {
  if (!Array.isArray(posted)) return []
  return posted.flatMap((one) => {
    const { port, protocol = 'TCP', targetPort = port } = (one ?? {}) as Record<string, unknown>
    if (!isPort(port) || typeof protocol !== 'string') return []
    if (isPort(targetPort)) return [{ port, protocol, targetPort }]
    if (typeof targetPort !== 'string' || targetPort === '') return []
    return [{ port, protocol, targetPort: /^\d{1,5}$/.test(targetPort) ? Number(targetPort) : targetPort }]
  })
}

const isPort = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) <= 65_535

/**
 * Since when the pods of workloads are known, and the nodes of their pods whose agent posts no more: the stale sweep
 * then marks pods dead, not their agent. Without a sweep (`staleSecs` 0) no node counts as silent.
 */
const WATCHED = fixed<{ kind: string; name: string; since: string | null; silent: string }[]>(`
  with asked as materialized (select $1::text as namespace, $2::int as stale_secs),
  posted as materialized (select p.node_name, max(p.time_stamp) as last_post_at from pod p group by p.node_name)
  select w.workload_kind as kind, w.workload_name as name, min(i.first_post)::text as since,
         coalesce(json_agg(distinct p.node_name order by p.node_name) filter (
           where a.stale_secs > 0 and (not p.is_dead or p.swept_at is not null)
             and n.last_post_at < now() at time zone 'utc' - make_interval(secs => a.stale_secs)), '[]')::text as silent
  from asked a
  join pod p on p.pod_namespace = a.namespace
  cross join lateral (
    select case when k.is_known then p.workload_kind else 'Pod' end as workload_kind,
           case when k.is_known then p.workload_name else p.pod_name end as workload_name
    from (select ltrim(p.workload_kind) <> '' and ltrim(p.workload_name) <> '' as is_known) k) w
  join posted n on n.node_name = p.node_name
  left join pod_instance i on i.pod_name = p.pod_name and i.pod_namespace = p.pod_namespace
  group by w.workload_kind, w.workload_name`)

export interface WatchedWorkload extends Watched {
  readonly workload: Workload
}

/** The workloads of a namespace that pods are known of, and how well these were watched. */
export async function readWatched(gate: Gate, namespace: string, staleSecs: number): Promise<WatchedWorkload[]> {
  const rows = await gate((sql) => WATCHED(sql, namespace, staleSecs))
  return rows.map(({ kind, name, since, silent }) => ({
    workload: { namespace, kind, name },
    since: since === null ? null : fromPostgres(since),
    silentNodes: JSON.parse(silent) as string[],
  }))
}
