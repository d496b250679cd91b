/** Widens what would change from day to day, or be too long (docs/contract.md#network-policies). */

import { type Block, covering, hasBlock, textOfBlock } from '../block.ts'
import type { DirectionName } from '../evaluate.ts'
import { type Pair, peerKey, type RulePeer, type RulePort, towards } from './observed.ts'

/** Ports from here on are given to clients by the kernel (net.ipv4.ip_local_port_range). */
const FIRST_EPHEMERAL = 32_768
const MANY_EPHEMERAL = 5
const MANY_EXTERNAL = 25
const MAX_NAMED = 5

/** Pairs with many ephemeral ports, or many external addresses, as fewer and wider ones; notes say so. */
export const widened = (pairs: readonly Pair[], direction: DirectionName, notes: Set<string>): readonly Pair[] => {
  const found = withoutManyExternals(withoutEphemeral(pairs, direction, notes), direction, notes)
  for (const { peer, port, names } of found) {
    if (peer.type === 'anyone') notes.add(noteOfAnyone(names, port))
    if (peer.type === 'pods' && peer.others.length > 0)
      notes.add(`${towards(direction)} ${listed(names)}: its labels also select the pods of ${listed(peer.others)}`)
  }
  return found
}

/** Many ephemeral ports of one peer are ports of clients that listen, of passive FTP or RPC: they change. */
function withoutEphemeral(pairs: readonly Pair[], direction: DirectionName, notes: Set<string>): readonly Pair[] {
  const isEphemeral = ({ port }: Pair) => typeof port.port === 'number' && port.port >= FIRST_EPHEMERAL
  const groups = new Map<string, Pair[]>()
  for (const pair of pairs) {
    const key = JSON.stringify([peerKey(pair.peer), pair.port.protocol])
    groups.set(key, [...(groups.get(key) ?? []), pair])
  }
  return [...groups.values()].flatMap((group) => {
    const ephemeral = group.filter(isEphemeral)
    if (ephemeral.length < MANY_EPHEMERAL) return group
    const [first] = group
    const names = [...new Set(group.flatMap((one) => one.names))].sort()
    notes.add(
      `${towards(direction)} ${listed(names)}: ${ephemeral.length} ports from ` +
        `${FIRST_EPHEMERAL} on were seen, so all ports of ${first!.port.protocol} are allowed`,
    )
    const port = { protocol: first!.port.protocol, port: null }
    return [{ peer: first!.peer, port, names, connections: group.flatMap((one) => one.connections) }]
  })
}

function withoutManyExternals(pairs: readonly Pair[], direction: DirectionName, notes: Set<string>): readonly Pair[] {
  const groups = new Map<string, Pair[]>()
  for (const pair of pairs) {
    const key = pair.peer.type === 'external' ? JSON.stringify(pair.port) : ''
    groups.set(key, [...(groups.get(key) ?? []), pair])
  }
  return [...groups].flatMap(([key, group]) => {
    if (key === '' || group.length <= MANY_EXTERNAL) return group
    const { port } = group[0]!
    const own = (one: Pair) => (one.peer as RulePeer & { block: Block }).block
    const networks = covering(group.map(own), MANY_EXTERNAL)
    notes.add(
      `${towards(direction)} ${group.length} external addresses on ${portText(port)}: ` +
        `these networks cover them: ${networks.map(textOfBlock).sort().join(', ')}`,
    )
    return networks.map((block) => {
      const covered = group.filter((one) => hasBlock(block, own(one)))
      const names = [...new Set(covered.flatMap((one) => one.names))].sort()
      return {
        peer: { type: 'external' as const, block },
        port,
        names,
        connections: covered.flatMap((one) => one.connections),
      }
    })
  })
}

const noteOfAnyone = (names: readonly string[], port: RulePort): string =>
  `egress to ${listed(names)}: ${names.length === 1 ? 'it has no selector, so its' : 'they have no selector, so their'} ` +
  `endpoints are not known and every address is allowed on ${portText(port)}: name them instead`

export const portText = ({ protocol, port }: RulePort): string => `${port ?? 'any port'}/${protocol}`

/** The first of some names; the others are counted. */
export const listed = (names: readonly string[]): string =>
  [...names.slice(0, MAX_NAMED), ...(names.length > MAX_NAMED ? [`+${names.length - MAX_NAMED} more`] : [])].join(', ')
