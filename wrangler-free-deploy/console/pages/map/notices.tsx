/** Lists the open namespaces, and states what the map leaves out. */
import type { Edge } from '../../api/edge.ts'
import { hrefWith, usePlace } from '../../place.ts'
import { flowsOf, type Graph } from './graph.ts'
import { MAX_ANSWER_EDGES, MAX_OPEN } from './requests.ts'

const number = new Intl.NumberFormat()
const OFFERED_NAMESPACES = 6

export interface OpenNamespacesProps {
  readonly open: readonly string[]
  /** Namespaces of the address beyond the limit of open ones. */
  readonly leftOut: readonly string[]
  readonly isReading: boolean
}

export function OpenNamespaces({ open, leftOut, isReading }: OpenNamespacesProps) {
  if (open.length === 0) return null
  return (
    <div class="map-open">
      <span>Open:</span>
      {open.map((one) => (
        <a
          key={one}
          class="chip-link"
          href={hrefWith({ open: [...open, ...leftOut].filter((other) => other !== one), selected: null })}
          aria-label={`Close ${one}`}
        >
          <span class="clip">{one}</span> ×
        </a>
      ))}
      {open.length > 1 && <a href={hrefWith({ open: null, selected: null })}>Close all</a>}
      {isReading && (
        <span class="faint" role="status">
          Reading its workloads…
        </span>
      )}
      {leftOut.length > 0 && (
        <p class="map-notice" role="status">
          At most {MAX_OPEN} namespaces are open at once. Closed, though the address names them: {leftOut.join(', ')}.
          Close another one to open them.
        </p>
      )}
    </div>
  )
}

export interface NarrowProps {
  readonly graph: Graph
  readonly namespaceEdges: readonly Edge[]
  /** Whether an answer has more edges than the limit of the request. */
  readonly isCut: boolean
  readonly unstamped: number
}

export function Narrow({ graph, namespaceEdges, isCut, unstamped }: NarrowProps) {
  const { query } = usePlace()
  const { nodes, edges, hiddenNodes, hiddenEdges } = graph
  const isLimited = hiddenNodes.length > 0 || hiddenEdges.length > 0
  if (!isLimited && !isCut && unstamped === 0) return null
  const isNarrowable = isLimited || isCut
  return (
    <div class="map-notice" role="status">
      {isNarrowable && <p class="empty-title">Narrow it: this is not the whole map</p>}
      {isLimited && (
        <p>
          The map draws the {number.format(nodes.length)} nodes and {number.format(edges.length)} edges with the most
          flows. {number.format(hiddenNodes.length)} nodes and {number.format(hiddenEdges.length)} edges with{' '}
          {number.format(flowsOf(hiddenEdges))} flows are in the table only.
        </p>
      )}
      {isCut && (
        <p>
          There are more edges than the {number.format(MAX_ANSWER_EDGES)} that were read, which are those with the most
          flows. The others are neither in the drawing nor in the table.
        </p>
      )}
      {isNarrowable && (
        <p class="map-links">
          {query.getAll('open').length > 0 && (
            <a href={hrefWith({ open: null, selected: null })}>Close all namespaces</a>
          )}
          <a href={hrefWith({ verdict: 'DROP' })}>Only dropped</a>
          <a href={hrefWith({ since: '24h' })}>New flows in 24 hours</a>
          {largestOf(namespaceEdges).map((namespace) => (
            <a key={namespace} href={hrefWith({ namespace, selected: null })}>
              Only {namespace}
            </a>
          ))}
        </p>
      )}
      {unstamped > 0 && (
        <p class="faint">
          {number.format(unstamped)} flows are left out: whether they match the filter is not known, since their
          workload, labels or node were not recorded.
        </p>
      )}
    </div>
  )
}

function largestOf(edges: readonly Edge[]): string[] {
  const flows = new Map<string, number>()
  for (const { from, to, flows: count } of edges)
    for (const namespace of new Set([from.namespace, to.namespace]))
      if (namespace !== null) flows.set(namespace, (flows.get(namespace) ?? 0) + count)
  const sorted = [...flows].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
  return sorted.slice(0, OFFERED_NAMESPACES).map(([namespace]) => namespace)
}
