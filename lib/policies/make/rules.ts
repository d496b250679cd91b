import { textOfBlock } from '../block.ts'
import { type Pair, peerKey, type RulePeer, type RulePort } from './peers.ts'

/** Peers that are allowed on the same ports, so that each combination was observed. */
export interface MadeRule {
  readonly peers: readonly RulePeer[]
  readonly ports: readonly RulePort[]
  /** The peers for people. */
  readonly names: readonly string[]
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Numbers first, in their order; then names. */
const portKey = ({ protocol, port }: RulePort): string =>
  typeof port === 'number' ? `0${String(port).padStart(5, '0')}${protocol}` : `1${port ?? ''}${protocol}`

/** Pods first, then addresses, then everyone. */
const placeOf = (peer: RulePeer): string =>
  peer.type === 'pods'
    ? `0${peerKey(peer)}`
    : 'block' in peer
      ? `1${peer.block.family}${peer.block.value.toString().padStart(40, '0')}${textOfBlock(peer.block)}`
      : `2${peer.type}`

/** The rules for pairs, in an order that depends on nothing else. Everyone is a rule of its own. */
export function rulesOf(pairs: readonly Pair[]): MadeRule[] {
  const byPeer = new Map<string, { peer: RulePeer; ports: Map<string, RulePort>; names: Set<string> }>()
  for (const { peer, port, names } of pairs) {
    const key = peerKey(peer)
    const found = byPeer.get(key) ?? { peer, ports: new Map(), names: new Set() }
    found.ports.set(portKey(port), port)
    for (const name of names) found.names.add(name)
    byPeer.set(key, found)
  }
  const rules = new Map<string, { peers: RulePeer[]; ports: RulePort[]; names: Set<string> }>()
  for (const { peer, ports, names } of byPeer.values()) {
    const keys = [...ports.keys()].sort(compare)
    const key = JSON.stringify([peer.type === 'anyone', keys])
    const rule = rules.get(key) ?? { peers: [], ports: keys.map((one) => ports.get(one)!), names: new Set() }
    rule.peers.push(peer)
    for (const name of names) rule.names.add(name)
    rules.set(key, rule)
  }
  return [...rules]
    .sort(([a], [b]) => compare(a, b))
    .map(([, { peers, ports, names }]) => ({
      peers: peers.sort((a, b) => compare(placeOf(a), placeOf(b))),
      ports,
      names: [...names].sort(compare),
    }))
}
