import type { Slice } from '../../event-loop/slices.ts'
import { hasBlock, parseBlock, textOfBlock } from '../block.ts'
import type { Connection } from '../facts.ts'
import { type DirectionName, type EvaluatedEnd, matchRule, type PodEnd } from '../match.ts'
import { NAMESPACE_NAME, type Peer, type Policy, type PortRange, type Rule } from '../policy.ts'
import type { Target, Topology } from '../topology.ts'
import { asSelector } from './labels.ts'
import { type Pair, peerKey, type RulePeer, type RulePort } from './peers.ts'

/** Private, shared and link-local networks have no external addresses, however wide a block is. */
const PRIVATE = [
  ...['10.0.0.0/8', '100.64.0.0/10', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'],
  ...['fc00::/7', 'fe80::/10'],
].map((cidr) => parseBlock(cidr)!)

/** The networks that a block does not mean: those inside it. */
export const exceptOf = ({ block }: RulePeer & { type: 'node' | 'external' | 'unresolved' }): readonly string[] =>
  PRIVATE.filter((one) => hasBlock(block, one)).map(textOfBlock)

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

/** Pods have other addresses after a restart, so no block stands for their labels. */
const outlasts = (other: Entry, { pair: { peer } }: Entry): boolean =>
  peer.type !== 'pods' || !('block' in other.pair.peer)

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
      connections: [...pair.connections],
      key: JSON.stringify([peerKey(pair.peer), pair.port]),
      rule: {
        path: '',
        peers: [evaluatedPeer(pair.peer, format === 'kubernetes')],
        ports: [evaluatedPort(pair.port)],
        unknown: null,
      },
    }))
    .sort((a, b) => rankOf(a.pair) - rankOf(b.pair) || (a.key < b.key ? -1 : 1))
  const kept = new Set<Entry>(rules)
  const candidates = new Candidates(rules)
  const allows = ({ rule }: Entry, { from, to, protocol }: Ends) =>
    from.every((source) =>
      to.every(({ end, port }) => {
        const attempt = { from: source, to: end, port, protocol }
        const match = matchRule(rule, NO_POLICY, direction, attempt)
        return match.peer === true && match.port === true
      }),
    )
  for (const one of rules) {
    if (slice.isOver) await slice.next()
    const coverOf = (connection: Connection) => {
      const ends = {
        from: topology.podsOf(connection.from),
        to: topology.targetsOf(connection),
        protocol: connection.protocol,
      }
      const mayCover = (other: Entry) => other !== one && kept.has(other) && outlasts(other, one)
      return candidates.of(ends, direction).findLast((other) => mayCover(other) && allows(other, ends))
    }
    const covers: Entry[] = []
    for (const connection of one.connections) {
      const cover = coverOf(connection)
      if (cover === undefined) break
      covers.push(cover)
    }
    if (covers.length < one.connections.length) continue
    kept.delete(one)
    // The cover may be asked later: it must not be left out while it is the last one that allows these.
    for (const [i, cover] of covers.entries()) cover.connections.push(one.connections[i]!)
  }
  return [...kept].map(({ pair }) => pair)
}

interface Entry {
  readonly pair: Pair
  /** Its own, and those of pairs that were left out because of it. */
  readonly connections: Connection[]
  readonly rule: Rule
}

/** The ends of a connection: all of them have to be allowed. */
interface Ends {
  readonly from: readonly EvaluatedEnd[]
  readonly to: readonly Target[]
  readonly protocol: string
}

const keyOfLabel = (namespace: string, label: string, value: string) => JSON.stringify([namespace, label, value])
const keyOfPort = (protocol: string, port: number) => `${protocol} ${port}`

/** Finds the rules that may allow a connection: a workload may have thousands of peers. */
class Candidates {
  /** By the rarest label of their selector. */
  readonly #ofPods = new Map<string, Entry[]>()
  /** Those of addresses with a number of a port, and all others. */
  readonly #ofPort = new Map<string, Entry[]>()
  readonly #others: Entry[] = []

  constructor(entries: readonly Entry[]) {
    const keysOf = ({ pair: { peer } }: Entry) =>
      peer.type === 'pods'
        ? Object.entries(peer.labels).map(([label, value]) => keyOfLabel(peer.namespace, label, value))
        : []
    const counts = new Map<string, number>()
    for (const key of entries.flatMap(keysOf)) counts.set(key, (counts.get(key) ?? 0) + 1)
    for (const one of entries) {
      const { protocol, port } = one.pair.port
      const [rarest] = keysOf(one).sort((a, b) => counts.get(a)! - counts.get(b)!)
      if (rarest !== undefined) added(this.#ofPods, rarest, one)
      else if (typeof port === 'number') added(this.#ofPort, keyOfPort(protocol, port), one)
      else this.#others.push(one)
    }
  }

  /** A rule has to allow all ends, so it is among those that may allow the first. */
  of({ from, to, protocol }: Ends, direction: DirectionName): readonly Entry[] {
    const [peer] = direction === 'egress' ? to.map(({ end }) => end) : from
    const port = to[0]?.port ?? null
    const labels = peer?.type === 'pod' ? Object.entries(peer.labels ?? {}) : []
    return [
      ...labels.flatMap(
        ([label, value]) => this.#ofPods.get(keyOfLabel((peer as PodEnd).namespace, label, value)) ?? [],
      ),
      ...(port === null ? [] : (this.#ofPort.get(keyOfPort(protocol.toUpperCase(), port)) ?? [])),
      ...this.#others,
    ]
  }
}

function added(map: Map<string, Entry[]>, key: string, entry: Entry): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [entry])
  else list.push(entry)
}

const NO_POLICY: Policy = {
  ...{ kind: 'NetworkPolicy', namespace: '', name: '', document: 0, subject: [], ingress: null, egress: null },
}
