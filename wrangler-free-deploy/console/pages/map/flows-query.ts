/** Filters of the flows page that match a node or an edge of the map, combined with the filter of the map. */
import type { MapEdge, MapNode } from './graph.ts'
import type { MapFilter } from './requests.ts'

/** Query parameters of flows; each may have several values. */
export type FlowsQuery = Readonly<Record<string, readonly string[]>>

const PEERS = ['node', 'external', 'unresolved']

/** `shop/Deployment/api`: the part after the kind in the id of a node. */
export const nameOfNode = ({ id }: Pick<MapNode, 'id'>): string => id.slice(id.indexOf(':') + 1)

/** The flows of a node, on one side or on either. */
function sideQuery(node: MapNode, prefix: '' | 'from_' | 'to_'): FlowsQuery {
  if (PEERS.includes(node.kind)) return { peer: [node.kind] }
  if (node.kind === 'network') return { peer: ['external'], [`${prefix}ip`]: [nameOfNode(node)] }
  return { [`${prefix}${node.kind}`]: [nameOfNode(node)] }
}

/**
 * The flows of a node. Null if the filter has other values of the same parameter: the flows of both cannot be asked for,
 * as its values are alternatives.
 */
export function nodeFlowsQuery(node: MapNode, filter: MapFilter): FlowsQuery | null {
  const own = sideQuery(node, '')
  const isOther = Object.entries(own).some(([name, values]) => {
    const wanted = valuesOf(filter[name]).filter((value) => !value.startsWith('!'))
    return wanted.length > 0 && !wanted.includes(values[0]!)
  })
  return isOther ? null : within(filter, own)
}

const valuesOf = (given: unknown): string[] => (given === undefined ? [] : [given].flat().map(String))

/** The flows of a drawn edge, on all of its ports that the filter allows. */
export function edgeFlowsQuery(edge: MapEdge, from: MapNode, to: MapNode, filter: MapFilter): FlowsQuery {
  return within(filter, { ...sideQuery(from, 'from_'), ...sideQuery(to, 'to_'), verdict: verdictsOf(edge) })
}

function verdictsOf({ isDropped, parts }: MapEdge): string[] {
  if (isDropped) return ['DROP']
  // The filter knows no other verdicts.
  return [parts.every(({ verdict }) => verdict === 'ALLOW') ? 'ALLOW' : '!DROP']
}

/**
 * Values of one parameter are alternatives, so adding those of the filter would widen the selection of the node or the
 * edge. Of a parameter that both have, only the exclusions of the filter are added.
 */
function within(filter: MapFilter, own: FlowsQuery): FlowsQuery {
  const merged: Record<string, readonly string[]> = { ...own }
  for (const [name, given] of Object.entries(filter)) {
    const values = valuesOf(given)
    const ownValues = own[name]
    merged[name] =
      ownValues === undefined
        ? values
        : [...new Set([...ownValues, ...values.filter((value) => value.startsWith('!'))])]
  }
  return merged
}
