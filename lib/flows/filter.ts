/**
 * The filter of flows: one object for pages, streams and whatever else selects flows (docs/contract.md#flow-queries).
 * Its SQL is put together from the fixed texts below and takes all values as parameters. It is null where the broker
 * cannot say whether a flow passes.
 */

/** A value as SQL takes it: a text, or the columns of a record. */
export type Value = string | Readonly<Record<string, string | number>>

/** One parameter with all its values. */
export interface Condition {
  readonly subject: Subject
  /** The side that a condition on a side is about. */
  readonly side: Side
  readonly wanted: readonly Value[]
  readonly excluded: readonly Value[]
}

/** All conditions have to hold. */
export type FlowFilter = readonly Condition[]

export type Side = 'either' | 'from' | 'to'

/**
 * How a subject compares a flow `t` with the values: SQL with `$values` for the JSON array of the values. `pod` is
 * about the side of the flow's own pod, `peer` about the other one.
 */
type Comparison = { readonly pod: string; readonly peer: string } | { readonly flow: string }

const TEXTS = 'array(select json_array_elements_text($values::text::json))'
/** The values as rows `v` of these columns. */
export const records = (columns: string) => `json_to_recordset($values::text::json) as v(${columns})`

/** Of the labels and the node of a pod, what was known by the time of the flow; no row where nothing was recorded. */
const known = (namespace: string, name: string, what: string) => `(
  select ${what} from pod_labels l
  where l.pod_namespace = ${namespace} and l.pod_name = ${name} and l.since <= t.time_stamp
  order by l.since desc limit 1)`
const ofPod = (what: string) => known('t.pod_namespace', 't.pod_name', what)
const ofPeer = (what: string) => known('t.peer_namespace', 't.peer_name', what)

const isPod = (
  namespace: string,
  name: string,
) => `coalesce(${namespace} is not null and ${name} is not null and exists (
  select from ${records('namespace text, name text, prefix text')}
  where v.namespace = ${namespace} and (v.name = ${name} or starts_with(${name}, v.prefix))), false)`

const PEER_KIND = "case when t.peer_workload_name is null then 'Pod' else t.peer_workload_kind end"
const PEER_WORKLOAD = 'coalesce(t.peer_workload_name, t.peer_name)'
/** Null where the kind and the name are not known and the namespace is one of those asked for. */
const isWorkload = (namespace: string, kind: string, name: string) => `
  ((${namespace}, ${name}) in (select v.namespace, v.name from ${records('namespace text, kind text, name text')}
                               where v.kind is null)
   or (${namespace}, ${kind}, ${name}) in (select v.namespace, v.kind, v.name
                                           from ${records('namespace text, kind text, name text')}
                                           where v.kind is not null))`

/** Reading an address costs far more than comparing its beginning, which settles almost all. */
export const hasAddress = (address: string) => `coalesce(
  ${address} in (select v.address from ${records('address text')} where v.address is not null)
  or ${address} like any (array(select v.beginning from ${records('beginning text')} where v.beginning is not null))
     and inet_of(${address}) <<= any (array(select v.network::inet from ${records('network text')}
                                            where v.network is not null)), false)`

const SERVER_PORT = `case t.traffic_type when 'EGRESS' then t.traffic_in_out_port when 'INGRESS' then t.pod_port end`
const HAS_LABEL = `l.labels @> any (array(
    select json_build_object(v.key, v.value)::jsonb from ${records('key text, value text')}))`

const PORTS = records('first int, last int')
/** Comparing numbers costs as much as the rest of a flow. Only ranges, and ports such as `0443`, need it. */
const isPort = (port: string) => `(${port} = any (array(select v.first::text from ${PORTS} where v.first = v.last))
  or (${port} like '0_%' or exists (select from ${PORTS} where v.first < v.last))
     and case when ${port} ~ '^[0-9]{1,5}$' then exists (
       select from ${PORTS} where (${port})::int between v.first and v.last) end)`

const COMPARISONS = {
  namespace: {
    pod: `coalesce(t.pod_namespace = any (${TEXTS}), false)`,
    peer: `coalesce(t.peer_kind in ('pod', 'service') and t.peer_namespace = any (${TEXTS}), false)`,
  },
  workload: {
    pod: `(t.pod_namespace is not null
      and ${isWorkload('t.pod_namespace', 't.pod_workload_kind', 't.pod_workload_name')})`,
    peer: `coalesce(t.peer_kind = 'pod' and ${isWorkload('t.peer_namespace', PEER_KIND, PEER_WORKLOAD)}, false)`,
  },
  pod: {
    pod: isPod('t.pod_namespace', 't.pod_name'),
    peer: `coalesce(t.peer_kind = 'pod' and ${isPod('t.peer_namespace', 't.peer_name')}, false)`,
  },
  service: {
    pod: 'false',
    peer: `coalesce(t.peer_kind = 'service' and (t.peer_namespace, t.peer_name) in (
      select v.namespace, v.name from ${records('namespace text, name text')}), false)`,
  },
  ip: { pod: hasAddress('t.pod_ip'), peer: hasAddress('t.traffic_in_out_ip') },
  label: {
    pod: ofPod(HAS_LABEL),
    peer: `case when t.peer_kind = 'pod' then ${ofPeer(HAS_LABEL)} else false end`,
  },
  node: {
    pod: ofPod(`l.node_name = any (${TEXTS})`),
    peer: `case when t.peer_kind in ('pod', 'node') then ${ofPeer(`l.node_name = any (${TEXTS})`)} else false end`,
  },
  port: { flow: `coalesce(${isPort(SERVER_PORT)}, false)` },
  protocol: { flow: `coalesce(t.ip_protocol = any (${TEXTS}), false)` },
  verdict: { flow: `coalesce(t.decision = any (${TEXTS}), false)` },
  seen_by: {
    flow: `coalesce(
      case t.traffic_type when 'EGRESS' then 'from' when 'INGRESS' then 'to' end = any (${TEXTS}), false)`,
  },
  peer: {
    flow: `(case when t.peer_kind is not null then t.peer_kind
             when is_public_address(t.traffic_in_out_ip) then 'external' else 'unresolved' end = any (${TEXTS}))`,
  },
  public: { flow: `(coalesce(is_public_address(t.traffic_in_out_ip), false)::text = any (${TEXTS}))` },
} as const satisfies Record<string, Comparison>

export type Subject = keyof typeof COMPARISONS
/** Whether a subject is about a side of a flow, not about the flow. */
export const isOfSide = (subject: Subject) => 'pod' in COMPARISONS[subject]
type Comparisons = Readonly<Record<Subject, Comparison>>

/**
 * The comparisons of an edge, a row `t` of `flow_edge` with the workload and the port behind a service in `via_kind`,
 * `via_name` and `via_port`. Those of a pod, a label, a node and an address need the flows.
 */
export const EDGE_COMPARISONS: Comparisons = {
  ...COMPARISONS,
  workload: {
    pod: COMPARISONS.workload.pod,
    peer: `(${COMPARISONS.workload.peer}
      or coalesce(t.via_name is not null and ${isWorkload('t.peer_namespace', 't.via_kind', 't.via_name')}, false))`,
  },
  port: { flow: `(coalesce(${isPort('t.port')}, false) or coalesce(${isPort('t.via_port')}, false))` },
  peer: {
    flow: `(coalesce(t.peer_kind, case when t.is_public then 'external' else 'unresolved' end) = any (${TEXTS}))`,
  },
  public: { flow: `(t.is_public::text = any (${TEXTS}))` },
}

/**
 * The comparisons of the flows that were counted into an edge, by that edge `t`: as those of the flows themselves,
 * without what is behind a service. Edges do not have what the other subjects compare.
 */
export const REPORTED_COMPARISONS: Comparisons = {
  ...EDGE_COMPARISONS,
  workload: COMPARISONS.workload,
  port: { flow: `coalesce(${isPort('t.port')}, false)` },
}
/** Fields that an edge does not keep. */
const NOT_OF_EDGES: readonly Subject[] = ['pod', 'label', 'node', 'ip']
export const isOfEdges = (subject: Subject): boolean => !NOT_OF_EDGES.includes(subject)

/** Whether any of the values matches. */
function matches({ subject, side }: Condition, comparisons: Comparisons): string {
  const comparison = comparisons[subject]
  if ('flow' in comparison) return comparison.flow
  const { pod, peer } = comparison
  if (side === 'either') return `(${pod} or ${peer})`
  const [egress, ingress] = side === 'from' ? [pod, peer] : [peer, pod]
  return `case t.traffic_type when 'EGRESS' then ${egress} when 'INGRESS' then ${ingress} else false end`
}

/**
 * The filter as SQL over the row `t` of `traffic`, with `parameter` called for each value that it takes; it returns the
 * placeholder.
 */
export function filterSql(
  filter: FlowFilter,
  parameter: (value: string) => string,
  comparisons: Comparisons = COMPARISONS,
): string {
  const conditions = filter.flatMap((condition) => {
    const text = matches(condition, comparisons)
    const { wanted, excluded } = condition
    // A function as replacement, because `$` has a meaning in a replacing text.
    const withValues = (values: readonly Value[]) => {
      const placeholder = parameter(JSON.stringify(values))
      return text.replaceAll('$values', () => placeholder)
    }
    return [
      ...(wanted.length > 0 ? [`(${withValues(wanted)})`] : []),
      ...(excluded.length > 0 ? [`not (${withValues(excluded)})`] : []),
    ]
  })
  return conditions.length === 0 ? 'true' : conditions.join('\n  and ')
}
