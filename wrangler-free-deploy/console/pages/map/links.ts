/** Where the nodes and the edges of the map lead. */
import { workloadOf } from '../../parts/edge.tsx'
import type { WorkloadName } from '../../parts/text.tsx'
import { href, type Query } from '../../place.ts'
import type { MapEdge, MapNode } from './graph.ts'

/** `shop/Deployment/api`: what follows the kind in the name of a node. */
export const nameOfNode = ({ id }: MapNode): string => id.slice(id.indexOf(':') + 1)

export function workloadOfNode(node: MapNode): WorkloadName | null {
  if (node.kind !== 'workload' || node.namespace === null) return null
  const workload = nameOfNode(node).slice(node.namespace.length + 1)
  return workloadOf({ kind: 'workload', namespace: node.namespace, name: null, workload, ip: null })
}

const PEERS = ['node', 'external', 'unresolved']

/** The filter of flows that means a node, on one side or on either. */
function queryOf(node: MapNode, prefix: '' | 'from_' | 'to_'): Query {
  if (PEERS.includes(node.kind)) return { peer: node.kind }
  return { [`${prefix}${node.kind}`]: nameOfNode(node) }
}

export const flowsOfNode = (node: MapNode): string => href(['flows'], queryOf(node, ''))

/** The flows of a drawn edge, of all its ports. */
export function flowsOfEdge({ isDropped }: MapEdge, from: MapNode, to: MapNode): string {
  return href(['flows'], {
    ...queryOf(from, 'from_'),
    ...queryOf(to, 'to_'),
    ...(isDropped && { verdict: 'DROP' }),
  })
}
