/**
 * Whether a rule of a policy matches a connection, part by part: null where that cannot be told, with the reasons
 * (docs/contract.md#network-policies).
 */
import { inBlock } from './address-block.ts'
import { type NamedPorts, numberOfPort } from './facts.ts'
import {
  type Labels,
  NAMESPACE_NAME,
  type Peer,
  type Policy,
  type PortRange,
  type Protocol,
  type Rule,
  type Selector,
} from './policy.ts'

/** Which of its pods took part is known of stored flows. */
export const SOME_ADDRESSES = 'only some of the addresses of a workload are in an address block'

/** A pod, or pods that agree in all of this. */
export interface PodEnd {
  readonly type: 'pod'
  readonly namespace: string
  /** All labels of the namespace; null where only its name is known. */
  readonly namespaceLabels: Labels | null
  /** Null where no pod is known any more. */
  readonly labels: Labels | null
  /** Whether it may have further labels: a pod without a manifest has at least those that select its workload. */
  readonly hasPartialLabels?: boolean
  readonly ips: readonly string[]
  readonly namedPorts: NamedPorts | null
  readonly isHostNetwork: boolean | null
}

/** A node or a pod on the host network; a public address; an address of which nothing is known; not even an address. */
export interface AddressEnd {
  readonly type: 'node' | 'external' | 'unresolved' | 'unknown'
  readonly ip: string | null
}

export type EvaluatedEnd = PodEnd | AddressEnd

/** A connection with the port that the server listens on, null where that is not known. */
export interface Attempt {
  readonly from: EvaluatedEnd
  readonly to: EvaluatedEnd
  readonly port: number | null
  readonly protocol: string
}

export type DirectionName = 'egress' | 'ingress'

/** True, false, or null where it cannot be told. */
export type Tri = boolean | null
/** The reasons why something cannot be told. */
export type Reasons = Set<string>

const UNKNOWN_LABELS = 'no pod of a workload is known any more, so its labels are not known'
const SOME_LABELS = 'a pod was posted without a manifest, so not all of its labels are known'
const UNKNOWN_ENDPOINTS = 'the endpoints of a service without a selector are not known'
const IN_OR_OUT = 'an address may be in the cluster or outside of it'

export const subjectOf = ({ from, to }: Attempt, direction: DirectionName) => (direction === 'egress' ? from : to)
export const peerOf = ({ from, to }: Attempt, direction: DirectionName) => (direction === 'egress' ? to : from)

/** How a rule matches a connection, part by part. */
export interface RuleMatch {
  readonly peer: Tri
  readonly port: Tri
}

export function matchRule(
  rule: Rule,
  policy: Policy,
  direction: DirectionName,
  attempt: Attempt,
  reasons: Reasons = new Set(),
): RuleMatch {
  const peer = peerOf(attempt, direction)
  return {
    peer: rule.peers === null || peersMatch(rule.peers, policy.namespace, peer, reasons),
    port: rule.ports === null || any(rule.ports, (one) => portMatches(one, attempt, reasons)),
  }
}

export function ruleMatches(
  rule: Rule,
  policy: Policy,
  direction: DirectionName,
  attempt: Attempt,
  reasons: Reasons,
): Tri {
  const { peer, port } = matchRule(rule, policy, direction, attempt, reasons)
  const matches = both(peer, port)
  if (matches !== true || rule.unknown === null) return matches
  return unknown(reasons, rule.unknown)
}

type Block = Peer & { kind: 'block' }
const isBlock = (peer: Peer): peer is Block => peer.kind === 'block'

function peersMatch(peers: readonly Peer[], namespace: string, end: EvaluatedEnd, reasons: Reasons): Tri {
  const others = any(
    peers.filter((one): one is Exclude<Peer, Block> => !isBlock(one)),
    (one) => peerMatches(one, namespace, end, reasons),
  )
  if (others === true) return true
  const blocks = blocksMatch(peers.filter(isBlock), end, reasons)
  return blocks === false ? others : blocks
}

function peerMatches(peer: Exclude<Peer, Block>, namespace: string, end: EvaluatedEnd, reasons: Reasons): Tri {
  if (peer.kind === 'unknown') return unknown(reasons, peer.reason)
  if (peer.kind === 'all') return true
  if (end.type === 'unknown') return unknown(reasons, UNKNOWN_ENDPOINTS)
  if (peer.kind === 'pods') return podsMatch(peer, namespace, end, reasons)
  if (end.type === 'unresolved') return unknown(reasons, IN_OR_OUT)
  if (peer.kind === 'world') return end.type === 'external'
  const isNode = end.type === 'node' || (end.type === 'pod' && end.isHostNetwork === true)
  return peer.kind === 'nodes' ? isNode : end.type !== 'external'
}

function podsMatch(
  { namespaces, pods }: Peer & { kind: 'pods' },
  namespace: string,
  end: EvaluatedEnd,
  reasons: Reasons,
): Tri {
  if (end.type !== 'pod') return false
  const isThere = namespaces === null ? end.namespace === namespace : namespaceMatches(namespaces, end, reasons)
  const isSelected = selectsPod(pods, end, reasons)
  const matches = both(isThere, isSelected)
  if (matches === false || end.isHostNetwork !== true) return matches
  return unknown(reasons, 'network plugins differ in whether selectors match pods on the host network')
}

/** "namespaceSelector": of most namespaces only the label with their name is known. */
function namespaceMatches(selector: Selector, { namespace, namespaceLabels }: PodEnd, reasons: Reasons): Tri {
  if (namespaceLabels !== null) return selects(selector, namespaceLabels)
  const name = { [NAMESPACE_NAME]: namespace }
  const isKnown = (one: Selector[number]) => one.key === NAMESPACE_NAME
  if (selects(selector.filter(isKnown), name) === false) return false
  return selector.every(isKnown) || unknown(reasons, 'labels of namespaces are not known')
}

/**
 * "ipBlock": "These should be cluster-external IPs", but the rule is about addresses, whoever has them. The blocks of a
 * rule are taken together, because pods have addresses of both families.
 */
function blocksMatch(blocks: readonly Block[], end: EvaluatedEnd, reasons: Reasons): Tri {
  const isOfCluster = end.type === 'pod' || end.type === 'node'
  const possible = blocks.filter(({ isForPods }) => isForPods || !isOfCluster)
  if (possible.length === 0) return false
  if (end.type === 'unknown') return unknown(reasons, UNKNOWN_ENDPOINTS)
  const ips = end.type === 'pod' ? end.ips : end.ip === null ? [] : [end.ip]
  if (ips.length === 0) return unknown(reasons, 'an address is not known')
  const isIn = (ip: string) => (block: Block) =>
    inBlock(block.cidr)(ip) && !block.except.some((one) => inBlock(one)(ip))
  const found = ips.map((ip) => possible.filter(isIn(ip)))
  if (found.every((matching) => matching.length === 0)) return false
  if (found.some((matching) => matching.length === 0)) return unknown(reasons, SOME_ADDRESSES)
  const isSure = end.type !== 'unresolved' || found.every((matching) => matching.some(({ isForPods }) => isForPods))
  return isSure || unknown(reasons, IN_OR_OUT)
}

const PROTOCOLS: ReadonlySet<string> = new Set<Protocol>(['TCP', 'UDP', 'SCTP', 'ICMP', 'ICMPV6'])

export function protocolOf(attempt: Attempt): Protocol {
  const sent = attempt.protocol.toUpperCase()
  return PROTOCOLS.has(sent) ? (sent as Protocol) : 'OTHER'
}

export const hasPorts = (protocol: Protocol): boolean => protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP'

function portMatches({ protocol, port, endPort }: PortRange, attempt: Attempt, reasons: Reasons): Tri {
  const own = protocolOf(attempt)
  if (protocol !== null && protocol !== own) return false
  if (!hasPorts(own)) return port === null && unknown(reasons, 'types of ICMP and rarer protocols are not told apart')
  if (port === null) return true
  if (attempt.port === null) return unknown(reasons, 'the port that the server listens on is not known')
  if (typeof port === 'number') return attempt.port >= port && attempt.port <= (endPort ?? port)
  const { to } = attempt
  // A name stands for the port of that name of the server's pod; an address has no such names.
  if (to.type === 'unknown') return unknown(reasons, UNKNOWN_ENDPOINTS)
  if (to.type !== 'pod') return false
  if (to.namedPorts === null) return unknown(reasons, 'the named ports of a pod are not known')
  if (numberOfPort(to.namedPorts, port, own) !== attempt.port) return false
  // Its address is that of a node, whose other pods have names of their own.
  return to.isHostNetwork !== true || unknown(reasons, 'network plugins differ in whether nodes have named ports')
}

/** "The requirements are ANDed." `NotIn` and `DoesNotExist` also hold where the label is missing. */
const selects = (selector: Selector, labels: Labels): boolean =>
  selector.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key]! : null
    if (operator === 'Exists') return value !== null
    if (operator === 'DoesNotExist') return value === null
    const isListed = value !== null && values.includes(value)
    return operator === 'In' ? isListed : !isListed
  })

/** Whether a selector selects a pod. Of a label that it may have, nothing is known. */
export function selectsPod(
  selector: Selector,
  { labels, hasPartialLabels = false }: Pick<PodEnd, 'labels' | 'hasPartialLabels'>,
  reasons: Reasons = new Set(),
): Tri {
  if (labels === null) return selector.length === 0 || unknown(reasons, UNKNOWN_LABELS)
  if (!hasPartialLabels) return selects(selector, labels)
  const known = selector.filter(({ key }) => Object.hasOwn(labels, key))
  if (!selects(known, labels)) return false
  return known.length === selector.length || unknown(reasons, SOME_LABELS)
}

export function any<T>(list: readonly T[], test: (one: T) => Tri): Tri {
  let found: Tri = false
  for (const one of list) {
    const result = test(one)
    if (result === true) return true
    if (result === null) found = null
  }
  return found
}

export const both = (a: Tri, b: Tri): Tri =>
  a === false || b === false ? false : a === null || b === null ? null : true
export const not = (a: Tri): Tri => (a === null ? null : !a)

export function unknown(reasons: Reasons, reason: string): null {
  reasons.add(reason)
  return null
}
