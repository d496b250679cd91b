/**
 * The answer of `GET /flows`, written from docs/contract.md#flow-queries alone: every filter is evaluated for every
 * flow, one value at a time.
 */

export type Text = string | null

/** A row of the table `traffic` without what other queries need. Times are naive UTC. */
export interface StoredFlow {
  uuid: string
  pod_name: Text
  pod_namespace: Text
  pod_ip: Text
  pod_port: Text
  ip_protocol: Text
  traffic_type: Text
  traffic_in_out_ip: Text
  traffic_in_out_port: Text
  decision: Text
  time_stamp: string
  peer_kind: 'pod' | 'service' | 'node' | null
  peer_namespace: Text
  peer_name: Text
  peer_uid: Text
  peer_workload_kind: Text
  peer_workload_name: Text
  peer_resolved_at: Text
  drop_cause: Text
  syn_retries: number | null
  pod_workload_kind: Text
  pod_workload_name: Text
}

/** The labels and node of a pod since a moment, until the next row of the same pod. */
export interface PodHistory {
  namespace: string
  name: string
  since: string
  labels: Record<string, string>
  node: string
}

export interface Store {
  flows: StoredFlow[]
  history: PodHistory[]
}

/** Filters, `since`, `until` and `order`, as in the query string. */
export type Query = [parameter: string, value: string][]

export interface Answer {
  /** The uuids of the matching flows, in order. */
  items: string[]
  /** How many other flows might match if more had been recorded. */
  unstamped: number
}

export function answer(store: Store, query: Query): Answer {
  const asked = grouped(query)
  const [since] = asked.get('since') ?? []
  const [until] = asked.get('until') ?? []
  const sign = asked.get('order')?.[0] === 'oldest' ? 1 : -1
  const filters = [...asked].filter(([parameter]) => !['since', 'until', 'order'].includes(parameter))
  const judged = store.flows
    .filter(
      ({ time_stamp: at }) =>
        (since === undefined || microseconds(at) >= microseconds(since)) &&
        (until === undefined || microseconds(at) < microseconds(until)),
    )
    .map((flow) => ({ flow, truth: all(filters.map(([parameter, values]) => filter(store, flow, parameter, values))) }))
  return {
    items: judged
      .filter(({ truth }) => truth === true)
      .map(({ flow }) => flow)
      .sort((a, b) => sign * inTime(a, b))
      .map(({ uuid }) => uuid),
    unstamped: judged.filter(({ truth }) => truth === null).length,
  }
}

/** The values of each parameter. A blank value is no filter. */
export function grouped(query: Query): Map<string, string[]> {
  const asked = new Map<string, string[]>()
  for (const [parameter, value] of query)
    if (value !== '') asked.set(parameter, [...(asked.get(parameter) ?? []), value])
  return asked
}

/** Oldest first, then by the bytes of the uuid. */
function inTime(a: StoredFlow, b: StoredFlow): number {
  const difference = microseconds(a.time_stamp) - microseconds(b.time_stamp)
  if (difference !== 0n) return difference < 0n ? -1 : 1
  return Buffer.compare(Buffer.from(a.uuid), Buffer.from(b.uuid))
}

// ---- Three-valued logic ---------------------------------------------------------------------------------------------

/** Null: true or false, but nobody recorded which. */
export type Truth = boolean | null

export const not = (one: Truth): Truth => (one === null ? null : !one)

export function all(many: Truth[]): Truth {
  if (many.includes(false)) return false
  return many.includes(null) ? null : true
}

export const any = (many: Truth[]): Truth => not(all(many.map(not)))

// ---- Filters --------------------------------------------------------------------------------------------------------

/** One of the values has to match, and none of the excluded ones. */
function filter(store: Store, flow: StoredFlow, parameter: string, values: string[]): Truth {
  const wanted = values.filter((value) => !value.startsWith('!'))
  const excluded = values.filter((value) => value.startsWith('!')).map((value) => value.slice(1))
  const match = (value: string) => matches(store, flow, parameter, value)
  return all([wanted.length === 0 ? true : any(wanted.map(match)), not(any(excluded.map(match)))])
}

export function matches(store: Store, flow: StoredFlow, parameter: string, value: string): Truth {
  const whole = ofFlow[parameter]
  if (whole) return whole(flow, value)
  const [, end, name] = /^(?:(from|to)_)?(.+)$/.exec(parameter)!
  const one = ofSide[name!]
  if (!one) throw new Error(`no filter ${parameter}`)
  const own = () => one.own(flow, value, store.history)
  const peer = () => one.peer(flow, value, store.history)
  if (end === undefined) return any([own(), peer()])
  const from = opener(flow)
  if (from === null) return false
  return (end === 'from') === (from === 'own') ? own() : peer()
}

/** The side that opened the connection, null where the direction is not known. */
export function opener({ traffic_type: type }: StoredFlow): 'own' | 'peer' | null {
  if (type === 'EGRESS') return 'own'
  return type === 'INGRESS' ? 'peer' : null
}

type OfSide = (flow: StoredFlow, value: string, history: PodHistory[]) => Truth

const never: OfSide = () => false

const ofSide: Record<string, { own: OfSide; peer: OfSide }> = {
  namespace: {
    own: (flow, value) => flow.pod_namespace === value,
    peer: (flow, value) => (isPeer(flow, 'pod') || isPeer(flow, 'service')) && flow.peer_namespace === value,
  },
  workload: {
    own(flow, value) {
      if (flow.pod_namespace !== splitName(value).namespace) return false
      if (flow.pod_workload_kind === null || flow.pod_workload_name === null) return null
      return isWorkload(value, flow.pod_workload_kind, flow.pod_workload_name)
    },
    peer(flow, value) {
      if (!isPeer(flow, 'pod') || flow.peer_namespace !== splitName(value).namespace) return false
      return isWorkload(value, ...peerWorkload(flow))
    },
  },
  pod: {
    own: (flow, value) => isPod(value, flow.pod_namespace, flow.pod_name),
    peer: (flow, value) => isPeer(flow, 'pod') && isPod(value, flow.peer_namespace, flow.peer_name),
  },
  service: {
    own: never,
    peer(flow, value) {
      const { namespace, rest } = splitName(value)
      return isPeer(flow, 'service') && flow.peer_namespace === namespace && flow.peer_name === rest
    },
  },
  ip: {
    own: (flow, value) => isWithin(flow.pod_ip, value),
    peer: (flow, value) => isWithin(flow.traffic_in_out_ip, value),
  },
  label: {
    own: (flow, value, history) => hasLabel(ownRecord(flow, history), value),
    peer: (flow, value, history) => isPeer(flow, 'pod') && hasLabel(peerRecord(flow, history), value),
  },
  node: {
    own: (flow, value, history) => isOnNode(ownRecord(flow, history), value),
    peer: (flow, value, history) =>
      (isPeer(flow, 'pod') || isPeer(flow, 'node')) && isOnNode(peerRecord(flow, history), value),
  },
}

const ofFlow: Record<string, (flow: StoredFlow, value: string) => Truth> = {
  port(flow, value) {
    const from = opener(flow)
    if (from === null) return false
    const port = portNumber(from === 'own' ? flow.traffic_in_out_port : flow.pod_port)
    const [first, last = first] = value.split('-').map(Number)
    return port !== null && port >= first! && port <= last!
  },
  protocol: (flow, value) => flow.ip_protocol === value.toUpperCase(),
  verdict: (flow, value) => flow.decision === value.toUpperCase(),
  // The agent of the pod reports a flow.
  seen_by: (flow, value) => opener(flow) === (value.toLowerCase() === 'from' ? 'own' : 'peer'),
  peer: (flow, value) => peerKind(flow) === value.toLowerCase(),
  public: (flow, value) => isPublic(flow.traffic_in_out_ip) === (value.toLowerCase() === 'true'),
}

const isPeer = (flow: StoredFlow, kind: StoredFlow['peer_kind']) => flow.peer_kind === kind

function splitName(value: string): { namespace: string; rest: string } {
  const slash = value.indexOf('/')
  return { namespace: value.slice(0, slash), rest: value.slice(slash + 1) }
}

/** `value` is `namespace/name` or `namespace/Kind/name`. */
function isWorkload(value: string, kind: Text, name: Text): boolean {
  const parts = value.split('/').slice(1)
  return parts.at(-1) === name && (parts.length === 1 || parts[0] === kind)
}

/** A peer that is a pod without a workload is its own. */
export function peerWorkload(flow: StoredFlow): [kind: Text, name: Text] {
  return flow.peer_workload_name === null ? ['Pod', flow.peer_name] : [flow.peer_workload_kind, flow.peer_workload_name]
}

/** `value` is `namespace/name` or `namespace/prefix*`. */
function isPod(value: string, namespace: Text, name: Text): boolean {
  const asked = splitName(value)
  if (namespace !== asked.namespace || name === null) return false
  return asked.rest.endsWith('*') ? name.startsWith(asked.rest.slice(0, -1)) : name === asked.rest
}

/** Only digits are a port, and none is above 65535. */
function portNumber(text: Text): number | null {
  if (text === null || !/^[0-9]{1,5}$/.test(text)) return null
  return Number(text) <= 65_535 ? Number(text) : null
}

export type Kind = 'pod' | 'service' | 'node' | 'external' | 'unresolved'

export const peerKind = (flow: StoredFlow): Kind =>
  flow.peer_kind ?? (isPublic(flow.traffic_in_out_ip) ? 'external' : 'unresolved')

// ---- Labels and nodes -----------------------------------------------------------------------------------------------

const ownRecord = (flow: StoredFlow, history: PodHistory[]) =>
  recordOf(history, flow.pod_namespace, flow.pod_name, flow.time_stamp)
const peerRecord = (flow: StoredFlow, history: PodHistory[]) =>
  recordOf(history, flow.peer_namespace, flow.peer_name, flow.time_stamp)

/** The newest record of the pod by the time of the flow, null where there is none. */
function recordOf(history: PodHistory[], namespace: Text, name: Text, at: string): PodHistory | null {
  let newest: PodHistory | null = null
  for (const one of history) {
    const isKnown = one.namespace === namespace && one.name === name && microseconds(one.since) <= microseconds(at)
    if (isKnown && (newest === null || microseconds(one.since) > microseconds(newest.since))) newest = one
  }
  return newest
}

function hasLabel(record: PodHistory | null, value: string): Truth {
  if (record === null) return null
  const equals = value.indexOf('=')
  const key = value.slice(0, equals)
  return Object.hasOwn(record.labels, key) && record.labels[key] === value.slice(equals + 1)
}

const isOnNode = (record: PodHistory | null, value: string): Truth => (record === null ? null : record.node === value)

// ---- Addresses ------------------------------------------------------------------------------------------------------

export interface Address {
  bits: 32 | 128
  value: bigint
}

/** Null for text that is no address. An IPv4 address mapped into IPv6 is the IPv4 address. */
export function addressOf(text: Text): Address | null {
  if (text === null) return null
  const four = quad(text)
  if (four !== null) return { bits: 32, value: four }
  const six = groups(text)
  if (six === null) return null
  return six >> 32n === 0xffffn ? { bits: 32, value: six & 0xffffffffn } : { bits: 128, value: six }
}

/** The number of a dotted quad without leading zeros. */
function quad(text: string): bigint | null {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) < 256))
    return null
  return parts.reduce((sum, part) => sum * 256n + BigInt(part), 0n)
}

/** The number of an IPv6 address: eight groups, `::` for one or more groups of zeros, perhaps a quad at the end. */
function groups(text: string): bigint | null {
  const halves = text.split('::')
  if (halves.length > 2) return null
  const [head, tail] = halves.map((half, i) => sixteens(half, i === halves.length - 1))
  if (head === null || head === undefined || tail === null) return null
  const missing = 8 - head.length - (tail?.length ?? 0)
  if (tail === undefined ? missing !== 0 : missing < 1) return null
  return [...head, ...Array<bigint>(missing).fill(0n), ...(tail ?? [])].reduce(
    (sum, group) => sum * 65_536n + group,
    0n,
  )
}

/** The 16-bit groups of one half of an IPv6 address. */
function sixteens(half: string, mayEndInQuad: boolean): bigint[] | null {
  if (half === '') return []
  const found: bigint[] = []
  const parts = half.split(':')
  for (const [i, part] of parts.entries()) {
    const four = mayEndInQuad && i === parts.length - 1 ? quad(part) : null
    if (four !== null) found.push(four >> 16n, four & 0xffffn)
    else if (/^[0-9a-f]{1,4}$/i.test(part)) found.push(BigInt(`0x${part}`))
    else return null
  }
  return found
}

/** `range` is an address or a CIDR. One of IPv6 holds no IPv4 address, unless all of its addresses are mapped ones. */
function isWithin(text: Text, range: string): boolean {
  const [base, length] = range.split('/')
  const [address, first] = [addressOf(text), addressOf(base!)]
  if (first === null) throw new Error(`no address or CIDR: ${range}`)
  if (address === null || address.bits !== first.bits) return false
  const rest = BigInt(length === undefined ? 0 : (base!.includes(':') ? 128 : 32) - Number(length))
  return address.value >> rest === first.value >> rest
}

const RESERVED = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.2.0/24'],
  ...['192.168.0.0/16', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
  ...['::/127', 'fc00::/7', 'fe80::/10', 'ff00::/8', '2001:db8::/32', '3fff::/20'],
]

const isPublic = (text: Text) => addressOf(text) !== null && !RESERVED.some((range) => isWithin(text, range))

// ---- Times ----------------------------------------------------------------------------------------------------------

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?$/

/** A time without a zone is in UTC. Digits beyond microseconds are cut. */
export function microseconds(text: string): bigint {
  const [, seconds, fraction = '', zone = 'Z'] = TIME.exec(text) ?? assertTime(text)
  return BigInt(Date.parse(`${seconds}${zone}`)) * 1_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6))
}

function assertTime(text: string): never {
  throw new Error(`no time: ${text}`)
}

// ---- Items ----------------------------------------------------------------------------------------------------------

export interface Side {
  kind: Kind | null
  namespace: Text
  name: Text
  workload: Text
  ip: Text
  port: Text
}

const NONE: Side = { kind: null, namespace: null, name: null, workload: null, ip: null, port: null }

/** `from` and `to` of an item, all null where the direction is not known. */
export function sides(flow: StoredFlow): { from: Side; to: Side } {
  const own: Side = {
    kind: 'pod',
    namespace: flow.pod_namespace,
    name: flow.pod_name,
    workload: workloadText(flow.pod_workload_kind, flow.pod_workload_name),
    ip: flow.pod_ip,
    port: flow.pod_port,
  }
  const peer: Side = {
    kind: peerKind(flow),
    namespace: flow.peer_namespace,
    name: flow.peer_name,
    workload: isPeer(flow, 'pod') ? workloadText(...peerWorkload(flow)) : null,
    ip: flow.traffic_in_out_ip,
    port: flow.traffic_in_out_port,
  }
  const from = opener(flow)
  if (from === null) return { from: NONE, to: NONE }
  return from === 'own' ? { from: own, to: peer } : { from: peer, to: own }
}

const workloadText = (kind: Text, name: Text): Text => (kind === null || name === null ? null : `${kind}/${name}`)
