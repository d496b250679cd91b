/**
 * Whether policies allow a connection, by the documentation of the Kubernetes API ("NetworkPolicySpec v1") and of
 * Cilium. The answer is `unknown` where that depends on what the broker does not know
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

export type Verdict = 'allowed' | 'denied' | 'unknown'

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

/** The verdict of the policies that select one end. */
export interface SideVerdict {
  readonly direction: DirectionName
  readonly verdict: Verdict
  /** The policies that isolate the end in this direction. */
  readonly policies: readonly Policy[]
}

export interface Judgement {
  readonly verdict: Verdict
  /** Only the ends that a policy isolates. */
  readonly sides: readonly SideVerdict[]
}

/** True, false, or null where it cannot be told. */
type Tri = boolean | null
/** The reasons why something cannot be told. */
type Reasons = Set<string>

const UNKNOWN_LABELS = 'no pod of a workload is known any more, so its labels are not known'
const SOME_LABELS = 'a pod was posted without a manifest, so not all of its labels are known'
const UNKNOWN_ENDPOINTS = 'the endpoints of a service without a selector are not known'
const IN_OR_OUT = 'an address may be in the cluster or outside of it'

/** Every end has to allow a connection; an end that no policy isolates allows everything. */
export function judge(policies: readonly Policy[], attempt: Attempt, reasons: Reasons = new Set()): Judgement {
  const sides: SideVerdict[] = []
  for (const direction of ['egress', 'ingress'] as const) {
    const isolating = isolatingPolicies(policies, direction, subjectOf(attempt, direction))
    if (isolating.length > 0) sides.push(judgeSide(isolating, direction, attempt, reasons))
  }
  return { verdict: strictest(sides.map(({ verdict }) => verdict)), sides }
}

/**
 * The policies of an end in a direction, or those that may be: none where they isolate and deny nothing. Only pods have
 * any.
 */
export function isolatingPolicies(
  policies: readonly Policy[],
  direction: DirectionName,
  end: EvaluatedEnd,
): readonly Policy[] {
  if (end.type !== 'pod') return []
  const own = policies.filter(
    (one) => one[direction] !== null && one.namespace === end.namespace && selectsPod(one.subject, end) !== false,
  )
  return own.some((one) => isolates(one, direction) || one[direction]!.deny.length > 0) ? own : []
}

/** Whether what no rule of the policy allows is denied. */
export const isolates = (policy: Policy, direction: DirectionName): boolean =>
  policy[direction] !== null && policy[direction].isWithoutDefaultDeny !== true

/** The verdict of the policies that isolate an end. */
export function judgeSide(
  isolating: readonly Policy[],
  direction: DirectionName,
  attempt: Attempt,
  reasons: Reasons = new Set(),
): SideVerdict {
  const subject = subjectOf(attempt, direction) as PodEnd
  const matching = (kind: 'allow' | 'deny') => anyRule(isolating, kind, direction, attempt, reasons)
  const isIsolated = any(
    isolating.filter((policy) => isolates(policy, direction)),
    (policy) => applies(policy, direction, attempt, reasons),
  )
  const isKept = both(isIsolated, not(matching('allow')))
  const isAllowed = both(not(isKept), not(matching('deny')))
  // "NetworkPolicy behaviour for hostNetwork pods is undefined": most plugins do not isolate them.
  if (subject.isHostNetwork === true)
    reasons.add('network plugins differ in whether policies isolate pods on the host network')
  const isSure = subject.isHostNetwork !== true
  const verdict = isAllowed === true ? 'allowed' : isAllowed === false && isSure ? 'denied' : null
  return { direction, verdict: verdict ?? byAddress(isolating, direction, attempt), policies: isolating }
}

/**
 * The verdict of an end that is denied or unknown, where the peer is the node of the pod. "Traffic to and from the node
 * where a Pod is running is always allowed"; Cilium lets only the node in, unless a rule denies that.
 */
export function judgeOwnNode(
  isolating: readonly Policy[],
  direction: DirectionName,
  attempt: Attempt,
  verdict: Verdict,
  reasons: Reasons,
): Verdict {
  const isCilium = isolating.some((one) => one.kind === 'CiliumNetworkPolicy' && isolates(one, direction))
  if (direction === 'egress' && isCilium) return verdict
  const isDenied = anyRule(isolating, 'deny', direction, attempt, reasons)
  return isDenied === null ? 'unknown' : isDenied ? verdict : 'allowed'
}

/**
 * Whether a policy selects the end of a connection and is about such connections: "it is only guaranteed to deny TCP,
 * UDP and SCTP connections", and it is "undefined what happens with (for example) ICMP packets".
 */
function applies(policy: Policy, direction: DirectionName, attempt: Attempt, reasons: Reasons): Tri {
  const isSelected = selectsPod(policy.subject, subjectOf(attempt, direction) as PodEnd, reasons)
  if (isSelected !== true || policy.kind === 'CiliumNetworkPolicy' || hasPorts(protocolOf(attempt))) return isSelected
  return unknown(reasons, 'network plugins differ in what a NetworkPolicy does to protocols beside TCP, UDP and SCTP')
}

/** Whether a rule of one of the policies matches, and that policy applies. */
const anyRule = (
  isolating: readonly Policy[],
  kind: 'allow' | 'deny',
  direction: DirectionName,
  attempt: Attempt,
  reasons: Reasons,
): Tri =>
  any(isolating, (policy) =>
    both(
      applies(policy, direction, attempt, reasons),
      any(policy[direction]![kind], (rule) => ruleMatches(rule, policy, direction, attempt, reasons)),
    ),
  )

/**
 * The verdict that holds for each address of the peer. Rules for IPv4 and for IPv6 may together match all addresses of
 * a workload, which none of them does alone.
 */
function byAddress(isolating: readonly Policy[], direction: DirectionName, attempt: Attempt): Verdict {
  const peer = peerOf(attempt, direction)
  if (peer.type !== 'pod' || peer.ips.length < 2) return 'unknown'
  let common: Verdict | null = null
  for (const ip of peer.ips) {
    const end = { ...peer, ips: [ip] }
    const one = direction === 'egress' ? { ...attempt, to: end } : { ...attempt, from: end }
    const { verdict } = judgeSide(isolating, direction, one)
    if (verdict === 'unknown' || (common ?? verdict) !== verdict) return 'unknown'
    common = verdict
  }
  return common!
}

const subjectOf = ({ from, to }: Attempt, direction: DirectionName) => (direction === 'egress' ? from : to)
const peerOf = ({ from, to }: Attempt, direction: DirectionName) => (direction === 'egress' ? to : from)

export const strictest = (verdicts: readonly Verdict[]): Verdict =>
  verdicts.includes('denied') ? 'denied' : verdicts.includes('unknown') ? 'unknown' : 'allowed'

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

function ruleMatches(rule: Rule, policy: Policy, direction: DirectionName, attempt: Attempt, reasons: Reasons): Tri {
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

function protocolOf(attempt: Attempt): Protocol {
  const sent = attempt.protocol.toUpperCase()
  return PROTOCOLS.has(sent) ? (sent as Protocol) : 'OTHER'
}

const hasPorts = (protocol: Protocol): boolean => protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP'

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

function any<T>(list: readonly T[], test: (one: T) => Tri): Tri {
  let found: Tri = false
  for (const one of list) {
    const result = test(one)
    if (result === true) return true
    if (result === null) found = null
  }
  return found
}

const both = (a: Tri, b: Tri): Tri => (a === false || b === false ? false : a === null || b === null ? null : true)
const not = (a: Tri): Tri => (a === null ? null : !a)

function unknown(reasons: Reasons, reason: string): null {
  reasons.add(reason)
  return null
}
