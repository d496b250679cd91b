/** Widens what would change from day to day, or be too long (docs/contract.md#network-policies). */

import { type Block, covering, hasBlock, textOfBlock } from '../block.ts'
import type { DirectionName } from '../match.ts'
import type { Notes } from './notes.ts'
import { type Pair, peerKey, type RulePeer, type RulePort, towards } from './peers.ts'

/** Ports from here on are given to clients by the kernel (net.ipv4.ip_local_port_range). */
const FIRST_EPHEMERAL = 32_768
const MANY_EPHEMERAL = 5
const MANY_EXTERNAL = 25
const MAX_NAMED = 5

/** Pairs with many ephemeral ports, or many external addresses, as fewer and wider ones; notes say so. */
export const widened = (pairs: readonly Pair[], direction: DirectionName, notes: Notes): readonly Pair[] =>
  withoutManyExternals(withoutEphemeral(pairs, direction, notes), direction, notes)

/** Notes of the pairs that a policy has: what they allow beside what was seen. */
export function noteWider(pairs: readonly Pair[], direction: DirectionName, notes: Notes): void {
  for (const { peer, port, names } of pairs) {
    if (peer.type === 'anyone') notes.add('any endpoint', noteOfAnyone(names, port))
    const others = peer.type === 'pods' ? peer.others.filter((one) => !names.includes(one)) : []
    if (others.length === 0) continue
    const says = `its labels also select the pods of ${listed(others)}`
    notes.add('shared labels', `${towards(direction)} ${listed(names)}: ${says}`)
  }
}

/** Many ephemeral ports of one peer are ports of clients that listen, of passive FTP or RPC: they change. */
function withoutEphemeral(pairs: readonly Pair[], direction: DirectionName, notes: Notes): readonly Pair[] {
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
      'ephemeral',
      `${towards(direction)} ${listed(names)}: ${ephemeral.length} ports from ` +
        `${FIRST_EPHEMERAL} on were seen, so all ports of ${first!.port.protocol} are allowed`,
    )
    const port = { protocol: first!.port.protocol, port: null }
    return [{ peer: first!.peer, port, names, connections: group.flatMap((one) => one.connections) }]
  })
}

function withoutManyExternals(pairs: readonly Pair[], direction: DirectionName, notes: Notes): readonly Pair[] {
  const groups = new Map<string, Pair[]>()
  for (const pair of pairs) {
    const key = pair.peer.type === 'external' ? JSON.stringify(pair.port) : ''
    groups.set(key, [...(groups.get(key) ?? []), pair])
  }
  return [...groups].flatMap(([key, group]) => {
    if (key === '' || group.length <= MANY_EXTERNAL) return group
    const { port } = group[0]!
    const own = (one: Pair) => (one.peer as RulePeer & { block: Block }).block
    const networks = networksOf(group.map(own))
    const count = new Set(group.flatMap(({ names }) => names)).size
    notes.add(
      'external',
      `${towards(direction)} ${count} external addresses on ${portText(port)}: ` +
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

/** At most `MANY_EXTERNAL` networks; each family has the part of them that it has of the addresses. */
function networksOf(blocks: readonly Block[]): Block[] {
  const [four, six] = [4, 6].map((family) => blocks.filter((one) => one.family === family)) as [Block[], Block[]]
  const part = Math.round((MANY_EXTERNAL * six.length) / blocks.length)
  const forSix = six.length === 0 ? 0 : Math.min(Math.max(part, 1), four.length === 0 ? part : MANY_EXTERNAL - 1)
  return [...covering(four, MANY_EXTERNAL - forSix), ...covering(six, forSix)]
}

const noteOfAnyone = (names: readonly string[], port: RulePort): string =>
  `egress to ${listed(names)}: ${names.length === 1 ? 'it has' : 'they have'} no selector, so the endpoints are not ` +
  `known and every address is allowed on ${portText(port)}, which may not be their port: name them instead`

export const portText = ({ protocol, port }: RulePort): string => `${port ?? 'any port'}/${protocol}`

/** The first of some names; the others are counted. */
export const listed = (names: readonly string[]): string =>
  [...names.slice(0, MAX_NAMED), ...(names.length > MAX_NAMED ? [`+${names.length - MAX_NAMED} more`] : [])].join(', ')
