/** Peers and ports that the connections of a workload need, in one direction (docs/contract.md#network-policies). */
import type { Slice } from '../../event-loop/slices.ts'
import { type Connection, type End, isLoopbackEnd, type Workload } from '../facts.ts'
import type { DirectionName } from '../match.ts'
import type { Topology } from '../topology.ts'
import type { Notes } from './notes.ts'
import { endText, mergedPeer, type Pair, peerKey, type RulePeer, type RulePort, towards } from './peers.ts'
import type { Reach } from './reach.ts'

/** Whether an end of a connection is a workload itself, and not a service in front of it. */
export const isEndOf = (workload: Workload, end: End): boolean =>
  end.type === 'workload'
    ? end.namespace === workload.namespace && end.kind === workload.kind && end.name === workload.name
    : end.type === 'pod' &&
      workload.kind === 'Pod' &&
      end.namespace === workload.namespace &&
      end.name === workload.name

/**
 * The connections of a workload in a direction: also those to the services that select it, and none within a pod, over
 * its loopback.
 */
export const connectionsOf = (
  workload: Workload,
  connections: readonly Connection[],
  direction: DirectionName,
  topology: Topology,
): Connection[] =>
  connections.filter(({ from, to }) =>
    direction === 'egress'
      ? isEndOf(workload, from) && !isLoopbackEnd(to)
      : (isEndOf(workload, to) && !isLoopbackEnd(from)) || (to.type === 'service' && topology.isBehind(workload, to)),
  )

/** The pairs of connections that were not dropped. Notes say what no pair allows. */
export async function observe(
  reach: Reach,
  connections: readonly Connection[],
  direction: DirectionName,
  notes: Notes,
  slice: Slice,
): Promise<Pair[]> {
  const pairs = new Map<string, { port: RulePort; names: Set<string>; connections: Connection[]; key: string }>()
  const merged = new Map<string, RulePeer>()
  for (const connection of connections) {
    if (slice.isOver) await slice.next()
    if (connection.isDropped) continue
    const other = direction === 'egress' ? connection.to : connection.from
    const { reached, faults, note } = reach.of(connection, other)
    for (const fault of faults) notes.add('LEFT OUT', `LEFT OUT: ${towards(direction)} ${endText(other)}: ${fault}`)
    if (note !== undefined) notes.add('shared labels', `${towards(direction)} ${endText(other)}: ${note}`)
    for (const { peer, port } of reached) {
      const key = peerKey(peer)
      merged.set(key, mergedPeer(merged.get(key), peer))
      const pairKey = JSON.stringify([key, port])
      const pair = pairs.get(pairKey) ?? { port, names: new Set(), connections: [], key }
      pair.names.add(endText(other))
      pair.connections.push(connection)
      pairs.set(pairKey, pair)
    }
  }
  return [...pairs.values()].map(({ key, ...one }) => ({
    ...one,
    peer: merged.get(key)!,
    names: [...one.names].sort(),
  }))
}
