/**
 * The answer of `GET /flows/edges`, written from docs/contract.md#flow-edges alone: each flow is judged and put into its
 * edge, one after the other.
 */
import {
  addressOf,
  all,
  any,
  grouped,
  type Kind,
  matches,
  microseconds,
  not,
  opener,
  type PodHistory,
  peerKind,
  peerWorkload,
  type Query,
  type StoredFlow,
  type Text,
  type Truth,
} from './flow-model.ts'

/** The workload behind a port of a service, and the port that its pods listen on. */
export interface Backend {
  namespace: string
  service: string
  port: string
  protocol: string
  kind: string
  workload: string
  targetPort: string
}

export interface EdgeStore {
  /** All flows that were ever stored, and those of them that are stored now. */
  counted: StoredFlow[]
  flows: StoredFlow[]
  history: PodHistory[]
  backends: Backend[]
}

export interface EdgeSide {
  kind: Kind | 'workload' | 'namespace'
  namespace: Text
  name: Text
  workload: Text
  ip: Text
}

export interface Edge {
  from: EdgeSide
  to: EdgeSide
  port: Text
  protocol: Text
  verdict: Text
  flows: number
  pods: number
  seenBy: string[]
  /** As flows have them. */
  firstSeenAt: string
  lastNewAt: string
}

export interface EdgeAnswer {
  /** In no order. */
  edges: Edge[]
  /** Null where the contract does not say how flows of a part of the range are counted. */
  unstamped: number | null
}

const NO_FILTERS = ['since', 'until', 'order', 'group', 'cidr']
/** Subjects that edges do not keep. */
const OF_FLOWS = /^(from_|to_)?(pod|label|node|ip)$/

export function edgesOf(store: EdgeStore, query: Query): EdgeAnswer {
  const asked = grouped(query)
  const [group = 'workload'] = asked.get('group') ?? []
  const cidr = asked.get('cidr')?.[0]
  const filters = [...asked].filter(([parameter]) => !NO_FILTERS.includes(parameter))
  const isOfFlows = filters.some(([parameter]) => OF_FLOWS.test(parameter))
  const since = asked.get('since')?.[0]
  const until = asked.get('until')?.[0]
  const isSince = (at: string) => since === undefined || microseconds(at) >= microseconds(since)
  const isUntil = (at: string) => until === undefined || microseconds(at) < microseconds(until)

  const directed = (isOfFlows ? store.flows : store.counted)
    .filter((flow) => opener(flow) !== null)
    .filter(({ time_stamp: at }) => !isOfFlows || (isSince(at) && isUntil(at)))
  const judged = directed.map((flow) => ({
    flow,
    truth: all(filters.map(([parameter, values]) => judge(store, flow, parameter, values))),
  }))

  const edges = new Map<string, { edge: Edge; pods: Set<string> }>()
  for (const { flow, truth } of judged) {
    if (truth !== true) continue
    const key = keyOf(store, flow, group, cidr)
    const text = JSON.stringify(key)
    const at = flow.time_stamp
    const found = edges.get(text) ?? {
      edge: { ...key, flows: 0, pods: 0, seenBy: [], firstSeenAt: at, lastNewAt: at },
      pods: new Set<string>(),
    }
    edges.set(text, found)
    const { edge, pods } = found
    edge.flows++
    if (flow.pod_name !== null) pods.add(JSON.stringify([flow.pod_namespace, flow.pod_name]))
    edge.pods = pods.size
    edge.seenBy = [...new Set([...edge.seenBy, opener(flow) === 'own' ? 'from' : 'to'])].sort()
    if (microseconds(at) < microseconds(edge.firstSeenAt)) edge.firstSeenAt = at
    if (microseconds(at) > microseconds(edge.lastNewAt)) edge.lastNewAt = at
  }
  return {
    edges: [...edges.values()]
      .map(({ edge }) => edge)
      .filter(({ firstSeenAt, lastNewAt }) => isSince(lastNewAt) && isUntil(firstSeenAt)),
    unstamped:
      isOfFlows || (since === undefined && until === undefined)
        ? judged.filter(({ truth }) => truth === null).length
        : null,
  }
}

/** As a filter of flows, but a workload or a port may also be behind the service. */
function judge(store: EdgeStore, flow: StoredFlow, parameter: string, values: string[]): Truth {
  const behind = /workload$|^port$/.test(parameter) ? behindService(store, flow) : null
  const views = behind === null ? [flow] : [flow, behind]
  const flows = { flows: store.flows, history: store.history }
  const match = (value: string) => any(views.map((view) => matches(flows, view, parameter, value)))
  const wanted = values.filter((value) => !value.startsWith('!'))
  const excluded = values.filter((value) => value.startsWith('!')).map((value) => value.slice(1))
  return all([wanted.length === 0 ? true : any(wanted.map(match)), not(any(excluded.map(match)))])
}

/** The flow as if its peer were the workload behind the service; null where it is not to such a service. */
function behindService({ backends }: EdgeStore, flow: StoredFlow): StoredFlow | null {
  if (flow.traffic_type !== 'EGRESS' || flow.peer_kind !== 'service') return null
  const backend = backends.find(
    (one) =>
      one.namespace === flow.peer_namespace &&
      one.service === flow.peer_name &&
      one.port === flow.traffic_in_out_port &&
      one.protocol === flow.ip_protocol,
  )
  if (!backend) return null
  return {
    ...flow,
    peer_kind: 'pod',
    peer_name: null,
    peer_workload_kind: backend.kind,
    peer_workload_name: backend.workload,
    traffic_in_out_port: backend.targetPort,
  }
}

type Key = Pick<Edge, 'from' | 'to' | 'port' | 'protocol' | 'verdict'>

function keyOf(store: EdgeStore, stored: StoredFlow, group: string, cidr: string | undefined): Key {
  const flow = behindService(store, stored) ?? stored
  const shown = (side: EdgeSide) => inGroup(store, side, group)
  const [own, peer] = [shown(ownSide(flow)), shown(peerSide(flow, cidr))]
  const isOut = opener(flow) === 'own'
  return {
    from: isOut ? own : peer,
    to: isOut ? peer : own,
    port: isOut ? flow.traffic_in_out_port : flow.pod_port,
    protocol: flow.ip_protocol,
    verdict: flow.decision,
  }
}

const NOTHING = { namespace: null, name: null, workload: null, ip: null }

function ownSide(flow: StoredFlow): EdgeSide {
  const { pod_namespace: namespace, pod_workload_kind: kind, pod_workload_name: workload } = flow
  return workload === null
    ? { ...NOTHING, kind: 'pod', namespace, name: flow.pod_name }
    : { ...NOTHING, kind: 'workload', namespace, workload: `${kind}/${workload}` }
}

function peerSide(flow: StoredFlow, cidr: string | undefined): EdgeSide {
  const kind = peerKind(flow)
  const { peer_namespace: namespace, traffic_in_out_ip: address } = flow
  if (kind === 'pod') return { ...NOTHING, kind: 'workload', namespace, workload: peerWorkload(flow).join('/') }
  if (kind === 'service') return { ...NOTHING, kind, namespace, name: flow.peer_name }
  return { ...NOTHING, kind, ip: kind === 'node' || cidr === undefined ? address : networkOf(address, Number(cidr)) }
}

function inGroup({ backends }: EdgeStore, side: EdgeSide, group: string): EdgeSide {
  const isInside = ['workload', 'pod', 'service'].includes(side.kind)
  if (group === 'namespace') return isInside ? { ...NOTHING, kind: 'namespace', namespace: side.namespace } : side
  if (group !== 'service' || side.kind !== 'workload') return side
  const services = new Set(
    backends
      .filter((one) => one.namespace === side.namespace && `${one.kind}/${one.workload}` === side.workload)
      .map(({ service }) => service),
  )
  const [service] = services
  return services.size === 1 ? { ...NOTHING, kind: 'service', namespace: side.namespace, name: service! } : side
}

/** The network of an address, of 64 bits for IPv6; text that is no address stays as it is. */
function networkOf(text: Text, bits: number): Text {
  const address = addressOf(text)
  if (address === null) return text
  const rest = BigInt(address.bits - (address.bits === 32 ? bits : 64))
  const first = (address.value >> rest) << rest
  if (address.bits === 32) return `${[24n, 16n, 8n, 0n].map((at) => (first >> at) & 0xffn).join('.')}/${bits}`
  const groups = [112n, 96n, 80n, 64n].map((at) => ((first >> at) & 0xffffn).toString(16))
  while (groups.at(-1) === '0') groups.pop()
  return `${groups.join(':')}::/64`
}
