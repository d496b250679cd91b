/** Explains why policies deny a connection: the rule that came nearest to allowing it, and what it lacked. */
import { isolates } from './evaluate.ts'
import { type Attempt, type DirectionName, type EvaluatedEnd, matchRule } from './match.ts'
import type { Peer, Policy, PortRange, Rule, Selector } from './policy.ts'

/** Peers and ports of a rule that are named at most; the others are counted. */
const MAX_NAMED = 4

export interface Miss {
  readonly policy: Policy
  /** The place of the rule in the document; null where the policy has no rule. */
  readonly path: string | null
  readonly why: string
}

/** The nearest rule of policies that deny an attempt; a deny rule that matches is nearer than any other. */
export function nearestMiss(policies: readonly Policy[], direction: DirectionName, attempt: Attempt): Miss {
  let nearest: (Miss & { score: number }) | null = null
  for (const policy of policies) {
    const { allow, deny } = policy[direction]!
    for (const rule of deny) {
      const { peer, port } = matchRule(rule, policy, direction, attempt)
      if (peer === true && port === true) return { policy, path: rule.path, why: 'a rule that denies matches' }
    }
    for (const rule of allow) {
      const { peer, port } = matchRule(rule, policy, direction, attempt)
      const score = (peer === true ? 2 : 0) + (port === true ? 1 : 0)
      if (nearest !== null && nearest.score >= score) continue
      const misses = [
        ...(peer === true ? [] : [missedPeer(rule, direction, attempt)]),
        ...(port === true ? [] : [missedPort(rule, attempt)]),
      ]
      nearest = { policy, path: rule.path, why: misses.join('; '), score }
    }
  }
  if (nearest === null) {
    const policy = policies.find((one) => isolates(one, direction)) ?? policies[0]!
    return { policy, path: null, why: `no rule allows any ${direction}` }
  }
  const { policy, path, why } = nearest
  return { policy, path, why }
}

function missedPeer({ peers }: Rule, direction: DirectionName, { from, to }: Attempt): string {
  const other = direction === 'egress' ? to : from
  if (peers!.length === 0) return 'the rule matches no peer'
  const keys = peers!.flatMap((one) => (one.kind === 'pods' ? one.pods.map(({ key }) => key) : []))
  return `${describedEnd(other, keys)} is not among ${listed(peers!.map(describedPeer))}`
}

function missedPort({ ports }: Rule, { port, protocol }: Attempt): string {
  if (ports!.length === 0) return 'the rule matches no port'
  return `port ${port ?? 'unknown'}/${protocol} is not among ${listed(ports!.map(describedPort))}`
}

/** An end, with those of its labels that a rule looks at. */
function describedEnd(end: EvaluatedEnd, keys: readonly string[]): string {
  if (end.type !== 'pod') return end.ip ?? 'an address'
  const { labels, hasPartialLabels, namespace } = end
  const shown = [...new Set(keys)].sort().map((key) => {
    const value = labels !== null && Object.hasOwn(labels, key) ? labels[key] : undefined
    return value !== undefined ? `${key}=${value}` : `${hasPartialLabels ? 'perhaps' : 'no'} label ${key}`
  })
  return `a pod of ${namespace}${shown.length === 0 ? '' : ` with ${listed(shown)}`}`
}

function describedPeer(peer: Peer): string {
  if (peer.kind === 'pods') {
    const namespaces =
      peer.namespaces === null ? 'its own namespace' : `namespaces with ${describedSelector(peer.namespaces)}`
    return `pods with ${describedSelector(peer.pods)} in ${namespaces}`
  }
  if (peer.kind === 'block') return peer.except.length === 0 ? peer.cidr : `${peer.cidr} without ${listed(peer.except)}`
  return peer.kind === 'unknown' ? 'a peer that cannot be told' : peer.kind
}

const describedSelector = (selector: Selector): string =>
  selector.length === 0
    ? 'any labels'
    : listed(
        selector.map(({ key, operator, values }) =>
          operator === 'In' && values.length === 1
            ? `${key}=${values[0]}`
            : [key, operator, ...(values.length > 0 ? [`(${listed(values)})`] : [])].join(' '),
        ),
      )

const describedPort = ({ protocol, port, endPort }: PortRange): string =>
  `${port ?? 'any port'}${endPort === null ? '' : `-${endPort}`}/${protocol ?? 'any protocol'}`

const listed = (texts: readonly string[]): string =>
  [...texts.slice(0, MAX_NAMED), ...(texts.length > MAX_NAMED ? [`${texts.length - MAX_NAMED} more`] : [])].join(', ')
