/** Links from the nodes and the edges of the map. */
import { useWindow } from '../../frame/window-picker.tsx'
import { workloadOf } from '../../parts/edge.tsx'
import { useFlowFilter } from '../../parts/flow-filter.ts'
import type { WorkloadName } from '../../parts/text.tsx'
import { href } from '../../place.ts'
import { edgeFlowsQuery, nameOfNode, nodeFlowsQuery } from './flows-query.ts'
import type { MapEdge, MapNode } from './graph.ts'
import type { MapFilter } from './requests.ts'

export function workloadOfNode(node: MapNode): WorkloadName | null {
  if (node.kind !== 'workload' || node.namespace === null) return null
  const workload = nameOfNode(node).slice(node.namespace.length + 1)
  return workloadOf({ kind: 'workload', namespace: node.namespace, name: null, workload, ip: null })
}

/** The filter and the window of the address. */
export const useMapFilter = () => ({ ...useFlowFilter(), ...useWindow() })

/** Null if its flows within the filter cannot be asked for. */
export function flowsOfNode(node: MapNode, filter: MapFilter): string | null {
  const query = nodeFlowsQuery(node, filter)
  return query && href(['flows'], query)
}

/** The flows of a drawn edge. */
export const flowsOfEdge = (edge: MapEdge, from: MapNode, to: MapNode, filter: MapFilter): string =>
  href(['flows'], edgeFlowsQuery(edge, from, to, filter))
