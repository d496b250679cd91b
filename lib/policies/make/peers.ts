/** The peers and ports of rules (docs/contract.md#network-policies). */
import { quoted } from '../../text/yaml.ts'
import { type Block, blockOf, textOfBlock } from '../block.ts'
import type { Connection, End } from '../facts.ts'
import type { DirectionName } from '../match.ts'
import { workloadText } from '../pods.ts'
import type { Labels } from '../policy.ts'

export type Format = 'kubernetes' | 'cilium'

/** Pods behind a service or of a workload. `others` are workloads that the labels of a workload select, too. */
export interface PodsPeer {
  readonly type: 'pods'
  readonly namespace: string
  readonly labels: Labels
  readonly isService: boolean
  readonly others: readonly string[]
}

export type RulePeer =
  | PodsPeer
  | { readonly type: 'node' | 'external' | 'unresolved'; readonly block: Block }
  /** All nodes, and all pods on the host network. */
  | { readonly type: 'nodes' }
  /** The API server, which only Cilium knows. */
  | { readonly type: 'apiserver' }
  /** Any endpoint of a service without a selector. */
  | { readonly type: 'anyone' }

/** A port that the server listens on: a number, a name, or null for all ports of the protocol. */
export interface RulePort {
  readonly protocol: string
  readonly port: number | string | null
}

/** A peer and a port that have to be allowed, because of some connections. */
export interface Pair {
  readonly peer: RulePeer
  readonly port: RulePort
  /** The peer for people, such as `shop/Deployment/web`. */
  readonly names: readonly string[]
  readonly connections: readonly Connection[]
}

/** The blocks of addresses, or the reason why there are none. */
export function blocks(
  type: 'node' | 'external' | 'unresolved',
  ips: readonly (string | null)[],
  isByNetwork: boolean,
): readonly RulePeer[] | string {
  const found = ips.map((ip) => (isByNetwork ? blockOf(ip, 24, 64) : blockOf(ip)))
  if (found.length === 0 || found.includes(null)) return 'its address is not known'
  return found.map((block) => ({ type, block: block! }))
}

export const towards = (direction: DirectionName): string => (direction === 'egress' ? 'egress to' : 'ingress from')

/** An end for people, on one line. */
export const endText = (end: End): string =>
  end.type === 'workload'
    ? quoted(workloadText(end))
    : end.type === 'pod'
      ? quoted(`${end.namespace}/Pod/${end.name}`)
      : end.type === 'service'
        ? `service ${quoted(`${end.namespace}/${end.name}`)}`
        : `${end.type === 'unresolved' ? 'address' : end.type} ${quoted(end.ip ?? 'unknown')}`

/**
 * One of two equal peers, in any order: a service may have the selector of a workload, and then means all pods that it
 * selects; workloads may have one selector, and each is another one of the other.
 */
export function mergedPeer(known: RulePeer | undefined, peer: RulePeer): RulePeer {
  if (known?.type !== 'pods' || peer.type !== 'pods' || known.isService) return known ?? peer
  return peer.isService ? peer : { ...peer, others: [...new Set([...known.others, ...peer.others])].sort() }
}

/** Equal for equal peers. */
export const peerKey = (peer: RulePeer): string =>
  peer.type === 'pods'
    ? JSON.stringify(['pods', peer.namespace, Object.entries(peer.labels).sort(([a], [b]) => (a < b ? -1 : 1))])
    : !('block' in peer)
      ? JSON.stringify([peer.type])
      : JSON.stringify([peer.type, textOfBlock(peer.block)])
