/** The filters of flows that mean what the map shows: the node or the edge, and the filter of the page. */
import type { MapEdge, MapNode } from './graph.ts'
import type { MapFilter } from './requests.ts'

/** Parameters of flows, of which each may have several values. */
export type FlowsQuery = Readonly<Record<string, readonly string[]>>

const PEERS = ['node', 'external', 'unresolved']

/** `shop/Deployment/api`: what follows the kind in the name of a node. */
export const nameOfNode = ({ id }: Pick<MapNode, 'id'>): string => id.slice(id.indexOf(':') + 1)

/** The flows of a node, on one side or on either. */
function sideQuery(node: MapNode, prefix: '' | 'from_' | 'to_'): FlowsQuery {
  if (PEERS.includes(node.kind)) return { peer: [node.kind] }
  if (node.kind === 'network') return { peer: ['external'], [`${prefix}ip`]: [nameOfNode(node)] }
  return { [`${prefix}${node.kind}`]: [nameOfNode(node)] }
}

export const nodeFlowsQuery = (node: MapNode, filter: MapFilter): FlowsQuery => within(filter, sideQuery(node, ''))

/** The flows of a drawn edge, of all its ports that the filter of the page lets through. */
export function edgeFlowsQuery(edge: MapEdge, from: MapNode, to: MapNode, filter: MapFilter): FlowsQuery {
  return within(filter, { ...sideQuery(from, 'from_'), ...sideQuery(to, 'to_'), verdict: verdictsOf(edge) })
}

function verdictsOf({ isDropped, parts }: MapEdge): string[] {
  if (isDropped) return ['DROP']
  const verdicts = new Set(parts.map(({ verdict }) => verdict))
  return verdicts.has(null) ? ['!DROP'] : [...verdicts].filter((verdict) => verdict !== null)
}

/**
 * Values of one parameter are alternatives, so those of the filter would widen what the node or the edge says:
 * of a parameter that both have, only what the filter excludes is added.
 */
function within(filter: MapFilter, own: FlowsQuery): FlowsQuery {
  const merged: Record<string, readonly string[]> = { ...own }
  for (const [name, given] of Object.entries(filter)) {
    const values = [given].flat().map(String)
    const ownValues = own[name]
    merged[name] =
      ownValues === undefined
        ? values
        : [...new Set([...ownValues, ...values.filter((value) => value.startsWith('!'))])]
  }
  return merged
}
