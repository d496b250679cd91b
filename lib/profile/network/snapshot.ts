/** The connections of a workload in a version of its profile (docs/contract.md#workload-profiles). */
import { MAX_SNAPSHOT_RULES, type SnapshotRule } from '../snapshot.ts'
import { peerKind, portOf } from './peer.ts'
import type { EdgeRow } from './read.ts'

/** Distinct rules, sorted by direction, peer, protocol and port; the first 2 000. */
export function networkSnapshot(edges: readonly EdgeRow[]): { readonly rules: readonly SnapshotRule[] } {
  const rules = new Map<string, SnapshotRule>()
  for (const edge of edges) {
    const rule = ruleOf(edge)
    rules.set(JSON.stringify([rule.direction, rule.peer, rule.protocol, rule.port]), rule)
  }
  return { rules: [...rules.values()].sort(inOrder).slice(0, MAX_SNAPSHOT_RULES) }
}

const ruleOf = (edge: EdgeRow): SnapshotRule => ({
  direction: edge.is_ingress ? 'ingress' : 'egress',
  peer: peerText(edge),
  port: portOf(edge.port),
  protocol: edge.protocol,
})

function peerText(edge: EdgeRow): string {
  const kind = peerKind(edge)
  const namespace = edge.peer_namespace ?? ''
  if (kind === 'pod') {
    const name =
      edge.peer_workload_name === null ? edge.peer_name : `${edge.peer_workload_kind}/${edge.peer_workload_name}`
    return `pod:${namespace}/${name}`
  }
  if (kind === 'service') return `service:${namespace}/${edge.peer_name}`
  return kind === 'node' ? 'node' : `${kind}:${edge.ip ?? ''}`
}

function inOrder(a: SnapshotRule, b: SnapshotRule): number {
  return (
    compare(a.direction, b.direction) ||
    compare(a.peer, b.peer) ||
    compare(a.protocol, b.protocol) ||
    (a.port ?? -1) - (b.port ?? -1)
  )
}

const compare = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)
