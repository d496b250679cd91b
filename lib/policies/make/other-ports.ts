import type { Connection, Workload } from '../facts.ts'
import type { DirectionName } from '../match.ts'
import type { Topology } from '../topology.ts'
import type { Notes } from './notes.ts'
import { endText, towards } from './peers.ts'

/**
 * Compares the target ports of services with what the servers themselves reported of the same clients. Where these have
 * other ports only, the specification of the service may be older or newer than the flows; both are allowed.
 */
export function noteOtherPorts(
  connections: readonly Connection[],
  direction: DirectionName,
  topology: Topology,
  notes: Notes,
): void {
  const reported = new Map<string, Map<string, { server: Workload; ports: Set<number> }>>()
  for (const { from, to, port, protocol, seenBy, isDropped } of connections) {
    if (seenBy !== 'to' || isDropped || to.type !== 'workload') continue
    const key = keyOf(topology.keyOf(from), protocol)
    const servers = reported.get(key) ?? new Map<string, { server: Workload; ports: Set<number> }>()
    reported.set(key, servers)
    const found = servers.get(topology.keyOf(to)) ?? { server: to, ports: new Set() }
    found.ports.add(Number(port))
    servers.set(topology.keyOf(to), found)
  }
  if (reported.size === 0) return
  for (const connection of connections) {
    const { from, to, protocol, isDropped } = connection
    if (to.type !== 'service' || isDropped) continue
    const seen = new Set<number>()
    for (const { server, ports } of reported.get(keyOf(topology.keyOf(from), protocol))?.values() ?? [])
      if (topology.isBehind(server, to)) for (const port of ports) seen.add(port)
    const targets = [...new Set(topology.targetsOf(connection).map(({ port }) => port))]
    if (seen.size === 0 || targets.some((port) => port === null || seen.has(port))) continue
    const other = direction === 'egress' ? to : from
    notes.add(
      'other ports',
      `${towards(direction)} ${endText(other)}: the servers behind ${endText(to)} reported ` +
        `${[...seen].sort((a, b) => a - b).join(', ')}/${protocol.toUpperCase()} and not its target port ` +
        `${targets.sort().join(', ')}: both are allowed`,
    )
  }
}

const keyOf = (from: string, protocol: string) => JSON.stringify([from, protocol.toUpperCase()])
