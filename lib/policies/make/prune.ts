import type { Slice } from '../../event-loop/slices.ts'
import { textOfBlock } from '../block.ts'
import { type DirectionName, matchRule } from '../evaluate.ts'
import type { Connection } from '../facts.ts'
import { NAMESPACE_NAME, type Peer, type Policy, type PortRange } from '../policy.ts'
import type { Topology } from '../topology.ts'
import { asSelector } from './labels.ts'
import { type Pair, peerKey, type RulePeer, type RulePort } from './peers.ts'

/** Private networks are no external addresses, however wide a block is. */
export const PRIVATE = { 4: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'], 6: ['fc00::/7'] }

/** The networks that a block does not mean. */
export const exceptOf = ({ block }: RulePeer & { type: 'node' | 'external' | 'unresolved' }): readonly string[] =>
  block.bits === 0 ? PRIVATE[block.family] : []

const evaluatedPeer = (peer: RulePeer, isForPods: boolean): Peer => {
  if (peer.type === 'nodes') return { kind: 'nodes' }
  if (peer.type === 'anyone') return { kind: 'all' }
  if (peer.type === 'apiserver') return { kind: 'unknown', reason: '' }
  if (peer.type !== 'pods') return { kind: 'block', cidr: textOfBlock(peer.block), except: exceptOf(peer), isForPods }
  const namespaces = asSelector({ [NAMESPACE_NAME]: peer.namespace })
  return { kind: 'pods', namespaces, pods: asSelector(peer.labels) }
}

const evaluatedPort = ({ protocol, port }: RulePort): PortRange => ({
  protocol: protocol as 'TCP',
  port,
  endPort: null,
})

/** The order in which pairs are left out: selectors of services and names of ports are made to last, so they stay. */
const RANKS = { pods: 0, external: 1, unresolved: 2, node: 3, nodes: 4, apiserver: 5, anyone: 5 }
const rankOf = ({ peer, port }: Pair) =>
  (typeof port.port === 'string' ? 10 : 0) + (peer.type === 'pods' && peer.isService ? 6 : RANKS[peer.type])

/**
 * The pairs without those of which every connection is allowed by another one. In what is left, each pair allows a
 * connection that no other one does.
 */
export async function pruned(
  pairs: readonly Pair[],
  direction: DirectionName,
  topology: Topology,
  format: 'kubernetes' | 'cilium',
  slice: Slice,
): Promise<readonly Pair[]> {
  const rules = pairs
    .map((pair) => ({
      pair,
      namespace: pair.peer.type === 'pods' ? pair.peer.namespace : null,
      rule: {
        path: '',
        peers: [evaluatedPeer(pair.peer, format === 'kubernetes')],
        ports: [evaluatedPort(pair.port)],
        unknown: null,
      },
    }))
    .map((one) => ({ ...one, key: JSON.stringify([peerKey(one.pair.peer), one.pair.port]) }))
    .sort((a, b) => rankOf(a.pair) - rankOf(b.pair) || (a.key < b.key ? -1 : 1))
  type Entry = (typeof rules)[number]
  const kept = new Set<Entry>(rules)
  // Selectors only match pods of their own namespace.
  const byNamespace = new Map<string | null, Entry[]>()
  for (const one of rules) byNamespace.set(one.namespace, [...(byNamespace.get(one.namespace) ?? []), one])
  const isCovered = (connection: Connection, by: Entry) => {
    const other = direction === 'egress' ? connection.to : connection.from
    const near = 'namespace' in other ? (byNamespace.get(other.namespace) ?? []) : []
    return [...near, ...(byNamespace.get(null) ?? [])].some(
      (one) => one !== by && kept.has(one) && allows(one, connection),
    )
  }
  const allows = ({ rule }: Entry, connection: Connection) => {
    const to = topology.targetsOf(connection)
    return topology.podsOf(connection.from).every((from) =>
      to.every(({ end, port }) => {
        const attempt = { from, to: end, port, protocol: connection.protocol }
        const { peer, port: isPort } = matchRule(rule, NO_POLICY, direction, attempt)
        return peer === true && isPort === true
      }),
    )
  }
  for (const one of rules) {
    if (slice.isOver) await slice.next()
    if (one.pair.connections.every((connection) => isCovered(connection, one))) kept.delete(one)
  }
  return [...kept].map(({ pair }) => pair)
}

const NO_POLICY: Policy = {
  ...{ kind: 'NetworkPolicy', namespace: '', name: '', document: 0, subject: [], ingress: null, egress: null },
}
