/**
 * Whether policies allow a connection, by the documentation of the Kubernetes API ("NetworkPolicySpec v1") and of
 * Cilium. The answer is `unknown` where that depends on what the broker does not know
 * (docs/contract.md#network-policies).
 */
import {
  type Attempt,
  any,
  both,
  type DirectionName,
  type EvaluatedEnd,
  hasPorts,
  not,
  type PodEnd,
  peerOf,
  protocolOf,
  type Reasons,
  ruleMatches,
  selectsPod,
  subjectOf,
  type Tri,
  unknown,
} from './match.ts'
import type { Policy } from './policy.ts'

export type Verdict = 'allowed' | 'denied' | 'unknown'

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
  const judged = isAllowed === true ? 'allowed' : isAllowed === false && isSure ? 'denied' : null
  const verdict = judged ?? byAddress(isolating, direction, attempt)
  if (verdict !== 'denied' || !mayBeOwnNode(isolating, direction, attempt, reasons))
    return { direction, verdict, policies: isolating }
  reasons.add('a pod on the host network may be on the node of the other end, which is always allowed')
  return { direction, verdict: 'unknown', policies: isolating }
}

/** Whether the peer is on the host network, and is allowed what is denied if its node is that of the pod. */
function mayBeOwnNode(
  isolating: readonly Policy[],
  direction: DirectionName,
  attempt: Attempt,
  reasons: Reasons,
): boolean {
  const peer = peerOf(attempt, direction)
  const isOnHost = peer.type === 'pod' && peer.isHostNetwork === true
  return isOnHost && judgeOwnNode(isolating, direction, attempt, 'denied', reasons) !== 'denied'
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

export const strictest = (verdicts: readonly Verdict[]): Verdict =>
  verdicts.includes('denied') ? 'denied' : verdicts.includes('unknown') ? 'unknown' : 'allowed'
