/**
 * Edges do not keep the pods, addresses, labels and nodes of their flows. The job `flow-edges` records the pods and
 * addresses that flows name; here a filter by one of these becomes a look-up of its edges
 * (docs/contract.md#flow-queries).
 */
import { type Condition, type FlowFilter, hasAddress, records } from './filter.ts'

/** The records of `flow_pod` of one pod for each workload that it had. */
const podsOf = (source: string) => `
    select p.*
    from ${source} s
    cross join lateral (
      select p.* from flow_pod p where p.pod_namespace = s.namespace and p.pod_name = s.name offset 0) p`
/** Of a pod whose labels were not recorded by its first flow, neither labels nor node are known. */
const WITHOUT_LABELS = 'select p.* from flow_pod p where not p.is_labelled'

/** The rows of a table whose address matches one of `$values`, by the index of that column. */
const withAddress = (table: string, column: string) => `
    select t.*
    from ${records('address text')}
    cross join lateral (select t.* from ${table} t where t.${column} = v.address offset 0) t
    union all
    select t.*
    from (select distinct split_part(v.beginning, '%', 1) as prefix from ${records('beginning text')}) v
    -- no character of an address is behind f
    cross join lateral (select t.* from ${table} t where t.${column} between v.prefix and v.prefix || 'g' offset 0) t
    where ${hasAddress(`t.${column}`)}`

/** The names that begin with a prefix are between it and it with this character. */
const LAST_CHARACTER = 0x10ffff
const NO_ADDRESSES = 'select a.* from flow_address a where false'

/** SQL of one subject, for the values of its condition. */
interface Names {
  /** From when on it is recorded: columns of the cursor `c`. */
  readonly since: string
  /** The pods that may match one of `$values`, rows of `flow_pod`; `addresses` are known if `isByAddress`. */
  readonly pods: string
  /** Addresses of what may match, rows of `flow_address`; the pods, `named`, are known unless `isByAddress`. */
  readonly addresses: string
  readonly isByAddress: boolean
  /** Whether the peer of an edge `t` may match, apart from a pod in `named`; and the rows `t` where it does. */
  readonly isOtherPeer: string
  readonly otherEdges: readonly string[]
}
const PODS_ONLY = {
  since: 'c.pods_since',
  addresses: NO_ADDRESSES,
  isByAddress: false,
  isOtherPeer: 'false',
  otherEdges: [],
}

const IS_NAMED_SERVICE = `(t.peer_kind = 'service' and (coalesce(t.peer_namespace, ''), coalesce(t.peer_name, ''))
           in (select a.namespace, a.name from addresses a where a.kind = 'service'))`
const EDGES_OF_SERVICES = `
    select t.*
    from (select distinct a.namespace, a.name from addresses a where a.kind = 'service') s
    cross join lateral (
      select t.* from flow_edge t
      where t.peer_kind = 'service' and coalesce(t.peer_namespace, '') = s.namespace
        and coalesce(t.peer_name, '') = s.name
      offset 0) t`
const IS_NAMED_NODE = `(t.peer_kind = 'node' and t.traffic_in_out_ip in (select a.address from addresses a))`
const EDGES_OF_NODES = `
    select t.*
    from (select distinct a.address from addresses a) a
    cross join lateral (
      select t.* from flow_edge t where t.traffic_in_out_ip = a.address and t.peer_kind = 'node' offset 0) t`

const SINCE_ADDRESSES = 'c.pods_since, c.addresses_since'

/** In order: a filter is read by the first subject of these that it has. */
const NAMES: Readonly<Partial<Record<Condition['subject'], Names>>> = {
  pod: {
    ...PODS_ONLY,
    pods: `${podsOf(`(select v.namespace, v.name from ${records('namespace text, name text')})`)}
    union all
    select p.*
    from ${records('namespace text, prefix text')}
    cross join lateral (
      select p.* from flow_pod p
      where p.pod_namespace = v.namespace and p.pod_name between v.prefix and v.prefix || chr(${LAST_CHARACTER})
      offset 0) p`,
  },
  ip: {
    since: SINCE_ADDRESSES,
    addresses: withAddress('flow_address', 'address'),
    isByAddress: true,
    pods: podsOf(`(select distinct a.namespace, a.name from addresses a where a.kind = 'pod')`),
    // Edges to pods and services have no address.
    isOtherPeer: `(${IS_NAMED_SERVICE} or ${hasAddress('t.traffic_in_out_ip')})`,
    otherEdges: [EDGES_OF_SERVICES, withAddress('flow_edge', 'traffic_in_out_ip')],
  },
  label: {
    ...PODS_ONLY,
    pods: `${podsOf(`(
      select distinct l.pod_namespace as namespace, l.pod_name as name
      from ${records('key text, value text')}
      cross join lateral pods_with_label(jsonb_build_object(v.key, v.value)) l)`)}
    union all ${WITHOUT_LABELS}`,
  },
  node: {
    since: SINCE_ADDRESSES,
    pods: `${podsOf(`(
      select distinct l.pod_namespace as namespace, l.pod_name as name
      from json_array_elements_text($values::text::json) v(node)
      cross join lateral (select l.* from pod_labels l where l.node_name = v.node offset 0) l)`)}
    union all ${WITHOUT_LABELS}`,
    addresses: `
    select a.*
    from (select distinct n.pod_namespace, n.pod_name from named n) n
    cross join lateral (
      select a.* from flow_address a
      where a.namespace = n.pod_namespace and a.name = n.pod_name and a.kind = 'node'
      offset 0) a`,
    isByAddress: false,
    isOtherPeer: IS_NAMED_NODE,
    otherEdges: [EDGES_OF_NODES],
  },
}
/** Of an edge where a peer is on this side. */
const DIRECTION = { either: 'true', from: `t.traffic_type = 'INGRESS'`, to: `t.traffic_type = 'EGRESS'` }
const IS_NAMED_POD = `(t.peer_kind = 'pod'
          and (coalesce(t.peer_namespace, ''), coalesce(t.peer_workload_kind, ''), coalesce(t.peer_workload_name, ''))
              in (select n.pod_namespace, n.workload_kind, n.workload_name from named n)
          and (t.peer_name is null
               or (coalesce(t.peer_namespace, ''), t.peer_name) in (select n.pod_namespace, n.pod_name from named n)))`
const EDGES_OF_PODS = `
    select t.*
    from (select distinct n.pod_namespace, n.workload_kind, n.workload_name from named n) w
    cross join lateral (
      select t.* from flow_edge t
      where t.peer_kind = 'pod' and coalesce(t.peer_namespace, '') = w.pod_namespace
        and coalesce(t.peer_workload_kind, '') = w.workload_kind
        and coalesce(t.peer_workload_name, '') = w.workload_name
      offset 0) t`

/** The look-up of a filter, as SQL. */
export interface Naming {
  /** From when on it is recorded: columns of the cursor `c`. */
  readonly since: string
  /** The tables `named`, rows of `flow_pod`, and `addresses`, rows of `flow_address`, each of which `bounded` reads. */
  readonly tables: string
  /** The edges `t` whose peer may be named: those to the workloads of pods in `named`, and others. */
  readonly edges: string
  /** Whether the peer of an edge `t` may be named. */
  readonly isPeer: string
  /** Whether a large part of all edges may be looked through: those to the addresses of a network. */
  readonly isBroad: boolean
}

/**
 * The condition of a filter that names most precisely, of those that only flows of what they name can meet; undefined
 * if there is none. `bounded` reads the rows of a statement, up to a limit.
 */
export function namingOf(
  filter: FlowFilter,
  parameter: (value: string) => string,
  bounded: (rows: string) => string,
): Naming | undefined {
  for (const [subject, names] of Object.entries(NAMES)) {
    const condition = filter.find((one) => one.subject === subject && one.wanted.length > 0)
    if (condition === undefined) continue
    const { since, isByAddress, isOtherPeer, otherEdges } = names
    const values = parameter(JSON.stringify(condition.wanted))
    const withValues = (sql: string) => sql.replaceAll('$values', () => values)
    const pods = `named as materialized (${bounded(withValues(names.pods))})`
    const addresses = `addresses as materialized (${bounded(withValues(names.addresses))})`
    return {
      since,
      tables: (isByAddress ? [addresses, pods] : [pods, addresses]).join(',\n  '),
      edges: withValues([EDGES_OF_PODS, ...otherEdges].join('\n    union all')),
      isBroad: condition.wanted.some((value) => typeof value === 'object' && 'network' in value),
      isPeer: withValues(`coalesce((${IS_NAMED_POD} or ${isOtherPeer}) and ${DIRECTION[condition.side]}, false)`),
    }
  }
  return
}
