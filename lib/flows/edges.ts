/** Reads edges: those that the job `flow-edges` counted, or counted by the query (docs/contract.md#flow-edges). */
import type { Gate } from '../db/index.ts'
import { joinedColumns, plainColumns, type RawRow } from '../records/index.ts'
import { type EdgeGroup, type EdgeOrder, type EdgePlace, FlowEdge } from './edge.ts'
import { EDGE_COMPARISONS, type FlowFilter, filterSql, isOfEdges } from './filter.ts'
import { isInsertedBy, isWrittenAfter, unprepared } from './read.ts'
import type { Reporters } from './reporters.ts'

/** Flows that a query counts itself at most. */
export const MAX_COUNTED = 1_000_000
/** The prefix of IPv6 addresses where addresses are counted by network. */
const IPV6_BITS = 64

/** The time of the first flow of all edges, also of flows that are pending; null where there is none. */
export const FIRST_SEEN_AT = `least(
  (select e.first_seen_at from flow_edge e order by e.first_seen_at limit 1),
  (select p.time_stamp from flow_edge_pending p order by p.time_stamp limit 1))`

export interface EdgeQuery {
  readonly filter: FlowFilter
  readonly group: EdgeGroup
  readonly cidr: number | null
  readonly countPods: boolean
  readonly order: EdgeOrder
  /** Texts of PostgreSQL. */
  readonly since: string
  readonly until: string
  readonly after: EdgePlace | null
  readonly limit: number
  readonly retentionDays: number
  /** The pods that reported all flows that may pass; null where any pod may have. */
  readonly reporters: Reporters | null
}

interface Facts {
  readonly place: Pick<EdgePlace, 'isChanged' | 'key' | 'hash'> | null
  readonly base: string
  readonly snapshot: string
  readonly asOf: string | null
  readonly observedSince: string | null
  readonly unstamped: number
}

export interface FoundEdges extends Facts {
  /** The edges in columns joined by `joinedColumns`, which begin at `FOUND_COLUMNS`. */
  readonly row: RawRow
  readonly passed: number
}

/** A filter of what an edge does not keep is put to the flows themselves. */
export const isCountedByQuery = (filter: FlowFilter): boolean => filter.some(({ subject }) => !isOfEdges(subject))

const EDGE = [
  ...['traffic_type', 'pod_namespace', 'pod_workload_kind', 'pod_workload_name', 'pod_name', 'peer_kind'],
  ...['peer_namespace', 'peer_workload_kind', 'peer_workload_name', 'peer_name', 'traffic_in_out_ip', 'is_public'],
  ...['port', 'ip_protocol', 'decision'],
]
const edgeOf = (alias: string) => EDGE.map((name) => `${alias}.${name}`).join(', ')

const SIDE = ['kind', 'namespace', 'name', 'workload', 'ip']
const columnsOf = (side: string) => SIDE.map((name) => `${side}.${name}`).join(', ')

/** Rows that are parts of edges: of counted flows, and of flows that are pending. */
const COUNTED = `
  select ${edgeOf('e')}, e.id, null::text as reporter, e.flows, e.pods, e.first_seen_at, e.last_new_at, e.counted_at,
         true as is_wanted
  from flow_edge e
  union all
  select ${edgeOf('p')}, null, p.reporter, 1, null, p.time_stamp, p.time_stamp, p.counted_at, true
  from flow_edge_pending p`

/** The flows `t` of the range, as `columns` has them; of some pods, where `pods` is the placeholder of their names. */
const flowsOf = (columns: string, since: string, until: string, pods: string | null) =>
  pods === null
    ? `select ${columns} from traffic t where t.time_stamp >= ${since} and t.time_stamp < ${until} offset 0`
    : `select f.*
        from json_array_elements_text(${pods}::text::json) p(pod_name)
        cross join lateral (
          select ${columns} from traffic t
          where t.pod_name = p.pod_name and t.time_stamp >= ${since} and t.time_stamp < ${until}
          offset 0) f`

/**
 * Such rows of flows that pass the filter, one for each pod that reported some. Those of flows of which more became
 * known since the list began count as changed.
 */
const countedNow = (filter: string, isChanged: string, since: string, until: string, pods: string | null) => `
  select ${edgeOf('e')}, null::uuid as id, (t.flow).pod_name as reporter, count(*) as flows, null::bigint as pods,
         min((t.flow).time_stamp) as first_seen_at, max((t.flow).time_stamp) as last_new_at,
         case when bool_or(t.is_changed) then 'infinity' else '-infinity' end::timestamp as counted_at, t.is_wanted
  from (${flowsOf(`t as flow, (${filter}) as is_wanted, ${isChanged} as is_changed`, since, until, pods)}) t
  cross join lateral edge_of_flow(t.flow) e
  where t.is_wanted is not false
  group by ${edgeOf('e')}, (t.flow).pod_name, t.is_wanted`

const workload = (kind: string, name: string) => `coalesce(${kind} || '/', '') || ${name}`

/** The sides of rows `t`. */
const sides = (address: string) => `
  cross join lateral (
    select case when t.pod_workload_name is null then 'pod' else 'workload' end as kind, t.pod_namespace as namespace,
           t.pod_name as name, ${workload('t.pod_workload_kind', 't.pod_workload_name')} as workload, null::text as ip
    offset 0) own_side
  cross join lateral (
    select case when t.peer_kind = 'pod' or t.via_name is not null then 'workload'
                when t.peer_kind is not null then t.peer_kind
                when t.is_public then 'external' else 'unresolved' end as kind,
           t.peer_namespace as namespace,
           case when t.peer_kind = 'service' and t.via_name is null then t.peer_name end as name,
           case when t.via_name is not null then ${workload('t.via_kind', 't.via_name')}
                when t.peer_kind = 'pod' and t.peer_workload_name is null then 'Pod/' || t.peer_name
                when t.peer_kind = 'pod' then ${workload('t.peer_workload_kind', 't.peer_workload_name')}
           end as workload,
           case when t.peer_kind is null then ${address} else t.traffic_in_out_ip end as ip
    offset 0) peer_side`

const network = (bits: string) => `coalesce((
  select network(set_masklen(a.ip, case family(a.ip) when 4 then ${bits}::int else ${IPV6_BITS} end))::text
  from inet_of(t.traffic_in_out_ip) a(ip)), t.traffic_in_out_ip)`

/** Either side as the group has it. */
const GROUPS: Readonly<Record<EdgeGroup, (side: string) => string>> = {
  workload: (side) => `select ${columnsOf(side)}`,
  namespace: (side) => `
    select case when n.is_inside then 'namespace' else ${side}.kind end as kind, ${side}.namespace,
           null::text as name, null::text as workload, ${side}.ip
    from (select ${side}.kind in ('workload', 'pod', 'service') as is_inside) n`,
  service: (side) => `
    select case when s.name is null then ${side}.kind else 'service' end as kind, ${side}.namespace,
           coalesce(s.name, ${side}.name) as name, case when s.name is null then ${side}.workload end as workload,
           ${side}.ip
    from (select) one
    left join services s on s.namespace = ${side}.namespace and s.workload = ${side}.workload`,
}

/** Workloads that one service selects. */
const SERVICES = `
  services as materialized (
    select b.svc_namespace as namespace, ${workload('b.workload_kind', 'b.workload_name')} as workload,
           min(b.svc_name) as name
    from service_backend b
    group by 1, 2
    having count(distinct b.svc_name) = 1)`

/** The columns of an edge, which are grouped as one array: that is cheaper than so many texts. */
const EDGE_COLUMNS = [
  ...[...SIDE.map((name) => `from_${name}`), ...SIDE.map((name) => `to_${name}`)],
  ...['port', 'protocol', 'verdict'],
]
const directed = (egress: string, ingress: string) =>
  SIDE.map((name) => `case t.traffic_type when 'EGRESS' then ${egress}.${name} else ${ingress}.${name} end`)
const GROUPED = `array[
      ${[...directed('own', 'peer'), ...directed('peer', 'own')].join(',\n      ')},
      coalesce(t.via_port, t.port), t.ip_protocol, t.decision]`
const COLUMNS = EDGE_COLUMNS.map((name, i) => `m.edge[${i + 1}] as ${name}`).join(', ')

/** Pods of several parts are counted once. */
const PODS = `
  case when m.parts = 1 and m.pods is not null then m.pods else (
    select count(*) from (
      select u.pod_namespace, p.pod_name
      from unnest(m.id_namespaces, m.ids) u(pod_namespace, id)
      cross join lateral (select p.pod_name from flow_edge_pod p where p.edge_id = u.id offset 0) p
      union
      select u.pod_namespace, u.pod_name from unnest(m.namespaces, m.reporters) u(pod_namespace, pod_name)) d) end`

const FACTS = `json_build_object(
  'place', (select json_build_object('isChanged', l.is_changed, 'key', l.key::text, 'hash', l.hash::text)
            from page l order by l.nth desc limit 1),
  'base', n.base::text, 'snapshot', n.snapshot, 'asOf', n.as_of::text, 'observedSince', n.observed_since::text,
  'unstamped', n.unstamped)::text`

/** Flows of which it is not known whether they pass, in the range. */
const UNSTAMPED = `(
  select coalesce(sum(t.flows), 0)::bigint from raw t
  where t.passes is null and t.last_new_at >= n.since and t.first_seen_at < n.until)`

/** Reads one page. */
export async function readEdges(gate: Gate, query: EdgeQuery): Promise<FoundEdges> {
  const { edges, values } = compose(query)
  const text = `${edges}
  select (select count(*) from page)::text, null, max(n.facts), ${joinedColumns(FlowEdge, 'm', 'm.flows is not null')}
  from (select ${FACTS} as facts
        from (select n.*, ${isMaybeUnknown(query.filter) ? UNSTAMPED : 0} as unstamped from now n) n) n
  left join shown m on true`
  const [row] = await gate((sql) => unprepared(sql, text, values).raw())
  return { row: row!, passed: Number(row![0]), ...(JSON.parse(row![2]!.toString()) as Facts) }
}

/** Whether more flows are in the range, of these pods, than a query counts itself. */
export async function isTooMany(
  gate: Gate,
  { since, until }: Pick<EdgeQuery, 'since' | 'until'>,
  pods: readonly string[] | null,
  most = MAX_COUNTED,
) {
  const flows = flowsOf('', '$1::text::timestamp', '$2::text::timestamp', pods === null ? null : '$3')
  const text = `select count(*)::int as flows from (select from (${flows}) t limit ${most + 1}) t`
  const [row] = await gate((sql) =>
    unprepared(sql, text, [since, until, ...(pods === null ? [] : [JSON.stringify(pods)])]),
  )
  return row!.flows > most
}

/** The same edges row by row: for values that joined columns cannot carry. */
export function readEdgesPlain(gate: Gate, query: EdgeQuery): Promise<RawRow[]> {
  const { edges, values } = compose(query)
  return gate((sql) => unprepared(sql, `${edges} select ${plainColumns(FlowEdge, 'm')} from shown m`, values).raw())
}

/** The CTEs `now`, `raw`, `page`, and `shown` with the edges of the page. */
function compose(query: EdgeQuery) {
  const { filter, group, cidr, countPods, order, since, until, after, limit, retentionDays, reporters } = query
  const values: (string | number)[] = []
  const parameter = (value: string | number) => `$${values.push(value)}`
  const time = (value: string) => `${parameter(value)}::text::timestamp`
  const ofFlows = filter.filter(({ subject }) => !isOfEdges(subject))
  const ofEdges = filter.filter(({ subject }) => isOfEdges(subject))
  const isNow = ofFlows.length > 0
  const [from, to] = [time(since), time(until)]
  // The flows of all pages are those of the first one.
  const seen = after ?? reporters
  const snapshot = !isNow ? null : seen === null ? 'pg_current_snapshot()' : `${parameter(seen.snapshot)}::pg_snapshot`
  const asOf = !isNow ? 'c.as_of' : seen === null ? `now() at time zone 'utc'` : time(seen.asOf)
  const pods = reporters === null ? null : parameter(JSON.stringify(reporters.pods))
  const countNow = (of: string) => {
    const isChanged = after === null ? 'false' : isWrittenAfter(of)
    return countedNow(`${filterSql(ofFlows, parameter)} and ${isInsertedBy(of)}`, isChanged, from, to, pods)
  }
  const parts = snapshot === null ? COUNTED : countNow(snapshot)
  const address = cidr === null ? 't.traffic_in_out_ip' : network(parameter(cidr))
  const key = order === 'flows' ? 'flows' : 'last_new_at'
  const type = order === 'flows' ? 'bigint' : 'timestamp'
  const edges = `
  with now as materialized (
    select ${from} as since, ${to} as until, ${asOf} as as_of,
           ${after === null ? 'c.counted_at' : time(after.base)} as base, c.backends_at,
           ${snapshot ?? "''"}::text as snapshot,
           case when e.first_seen_at is not null then greatest(e.first_seen_at, ${from},
                    now() at time zone 'utc' - make_interval(days => nullif(${parameter(retentionDays)}::int, 0))) end
             as observed_since
    from flow_edge_cursor c
    cross join (select ${FIRST_SEEN_AT} as first_seen_at) e),
  raw as ${isMaybeUnknown(filter) ? 'materialized' : 'not materialized'} (
    select t.*, (t.is_wanted and ${filterSql(ofEdges, parameter, EDGE_COMPARISONS)}) as passes
    from (select t.*, b.workload_kind as via_kind, b.workload_name as via_name, b.target_port as via_port
          from (${parts}) t
          left join service_backend b
            on t.traffic_type = 'EGRESS' and t.peer_kind = 'service' and b.svc_namespace = t.peer_namespace
           and b.svc_name = t.peer_name and b.port = t.port and b.protocol = t.ip_protocol
          offset 0) t)${group === 'service' ? `,${SERVICES}` : ''},
  edges as (
    select k.edge, k.hash, sum(t.flows)::bigint as flows, min(t.first_seen_at) as first_seen_at,
           max(t.last_new_at) as last_new_at, max(t.counted_at) as counted_at,
           bool_or(t.traffic_type = 'EGRESS') as is_seen_from, bool_or(t.traffic_type = 'INGRESS') as is_seen_to,
           count(*) as parts, max(t.pods) as pods, array_agg(t.id) filter (where t.id is not null) as ids,
           array_agg(t.pod_namespace) filter (where t.id is not null) as id_namespaces,
           array_agg(t.pod_namespace) filter (where t.reporter is not null) as namespaces,
           array_agg(t.reporter) filter (where t.reporter is not null) as reporters
    from raw t
    ${sides(address)}
    cross join lateral (${GROUPS[group]('own_side')}) own
    cross join lateral (${GROUPS[group]('peer_side')}) peer
    cross join lateral (
      select e.edge, hash_array_extended(e.edge, 0) as hash from (select ${GROUPED} as edge offset 0) e) k
    where t.passes
    -- Numbers are compared faster than edges.
    group by k.hash, k.edge
    having max(t.last_new_at) >= ${from} and min(t.first_seen_at) < ${to}),
  page as materialized (
    select m.*, row_number() over () as nth
    from (select m.*
          from (select m.*, m.${key} as key, greatest(m.counted_at, n.backends_at) > n.base as is_changed
                from edges m cross join now n) m
          where ${after === null ? 'true' : isBehind(after, parameter, type)}
          order by m.is_changed, case when not m.is_changed then m.key end desc, m.hash desc
          limit ${parameter(limit)}) m),
  shown as materialized (
    select ${COLUMNS}, m.flows, ${countPods ? PODS : 'null::bigint'} as pods,
           array_remove(array[case when m.is_seen_from then 'from' end, case when m.is_seen_to then 'to' end], null)
             as seen_by,
           m.first_seen_at, m.last_new_at
    from page m
    order by m.nth)`
  return { edges, values }
}

/** Workloads, labels and nodes were not always recorded. */
const isMaybeUnknown = (filter: FlowFilter): boolean =>
  filter.some(({ subject }) => ['workload', 'label', 'node'].includes(subject))

/** Edges that changed since the list began come behind all others, in an order that no change can move them in. */
const isBehind = ({ isChanged, key, hash }: EdgePlace, parameter: (value: string) => string, type: string) =>
  isChanged
    ? `m.is_changed and m.hash < ${parameter(hash)}::text::bigint`
    : `(m.is_changed or (m.key, m.hash) < (${parameter(key)}::text::${type}, ${parameter(hash)}::text::bigint))`
