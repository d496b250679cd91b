/**
 * The graph of the map, from two answers of `GET /flows/edges`: edges between namespaces, and edges of the workloads in
 * open namespaces. A closed namespace is one node. All machines are one node, and so are all external and all
 * unresolved peers. Edges with the same two nodes and the same verdict are drawn as one.
 */
import type { Edge, Side } from '../../api/edge.ts'

export const MAX_NODES = 500
export const MAX_EDGES = 2_000

export type NodeKind = 'namespace' | 'workload' | 'pod' | 'service' | 'node' | 'external' | 'unresolved' | 'network'

export interface MapNode {
  /** `workload:shop/Deployment/api`, `namespace:shop` or `external`; used in the address. */
  readonly id: string
  readonly kind: NodeKind
  readonly label: string
  /** Null for peers outside of all namespaces. */
  readonly namespace: string | null
  /** Flows of all edges that begin or end at this node. */
  readonly flows: number
  /** Number of networks it represents, and of addresses of machines, where peers have them. */
  readonly addresses: number
}

export interface MapEdge {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly isDropped: boolean
  readonly flows: number
  readonly firstSeenAt: string | null
  readonly lastNewAt: string | null
  /** The edges of the answers that it represents: one for each port, protocol and folded end. */
  readonly parts: readonly Edge[]
}

export interface Graph {
  readonly nodes: readonly MapNode[]
  readonly edges: readonly MapEdge[]
  /** Nodes and edges beyond the limits, those with the fewest flows; they are not drawn. */
  readonly hiddenNodes: readonly MapNode[]
  readonly hiddenEdges: readonly MapEdge[]
  /** Number of edges between namespaces that edges of workloads replace. */
  readonly replaced: number
}

export interface GraphInput {
  /** The answer for `group=namespace`. */
  readonly namespaceEdges: readonly Edge[]
  /** Edges with an end in one of the open namespaces. */
  readonly workloadEdges: readonly Edge[]
  readonly open: ReadonlySet<string>
  /** Whether each external network is a node of its own. */
  readonly hasNetworks?: boolean
}

export interface GraphLimits {
  readonly nodes: number
  readonly edges: number
}

export function buildGraph(
  { namespaceEdges, workloadEdges, open, hasNetworks = false }: GraphInput,
  limits: GraphLimits = { nodes: MAX_NODES, edges: MAX_EDGES },
): Graph {
  const kept = namespaceEdges.filter(({ from, to }) => !isIn(open, from) && !isIn(open, to))
  const nodes = new Map<string, GrowingNode>()
  const edges = new Map<string, GrowingEdge>()
  for (const edge of [...kept, ...workloadEdges]) {
    const from = nodeOf(nodes, edge.from, open, hasNetworks)
    const to = nodeOf(nodes, edge.to, open, hasNetworks)
    from.flows += edge.flows
    if (to !== from) to.flows += edge.flows
    addTo(edges, edge, from.id, to.id)
  }
  const finished = [...nodes.values()].map(({ addresses, ...node }) => ({ ...node, addresses: addresses.size }))
  const limited = limit(finished, [...edges.values()], limits)
  return { ...limited, replaced: namespaceEdges.length - kept.length }
}

const isIn = (open: ReadonlySet<string>, { namespace }: Side) => namespace !== null && open.has(namespace)

interface GrowingNode extends Omit<MapNode, 'flows' | 'addresses'> {
  flows: number
  readonly addresses: Set<string>
}

interface GrowingEdge extends MapEdge {
  flows: number
  firstSeenAt: string | null
  lastNewAt: string | null
  readonly parts: Edge[]
}

function nodeOf(
  nodes: Map<string, GrowingNode>,
  side: Side,
  open: ReadonlySet<string>,
  hasNetworks: boolean,
): GrowingNode {
  const named = nameOf(side, open, hasNetworks)
  let node = nodes.get(named.id)
  if (node === undefined) {
    node = { ...named, flows: 0, addresses: new Set() }
    nodes.set(named.id, node)
  }
  if (side.ip !== null) node.addresses.add(side.ip)
  return node
}

const OUTSIDE = { node: 'nodes', external: 'external', unresolved: 'unresolved' } as const

/** The node to which a side of an edge belongs. */
export function nameOf(
  side: Side,
  open: ReadonlySet<string>,
  hasNetworks = false,
): Pick<MapNode, 'id' | 'kind' | 'label' | 'namespace'> {
  const { kind, namespace, name, workload, ip } = side
  if (kind === 'external' && hasNetworks && ip !== null)
    return { id: `network:${ip}`, kind: 'network', label: ip, namespace: null }
  if (kind === 'node' || kind === 'external' || kind === 'unresolved')
    return { id: OUTSIDE[kind], kind, label: OUTSIDE[kind], namespace: null }
  if (kind === 'namespace' || !isIn(open, side))
    return { id: `namespace:${namespace}`, kind: 'namespace', label: `${namespace}`, namespace }
  const own = kind === 'workload' ? `${workload}` : `${name}`
  return { id: `${kind}:${namespace}/${own}`, kind, label: own.slice(own.indexOf('/') + 1), namespace }
}

function addTo(edges: Map<string, GrowingEdge>, edge: Edge, from: string, to: string): void {
  const isDropped = edge.verdict === 'DROP'
  const id = JSON.stringify([from, to, isDropped])
  const known = edges.get(id)
  if (known === undefined) {
    const { flows, firstSeenAt, lastNewAt } = edge
    edges.set(id, { id, from, to, isDropped, flows, firstSeenAt, lastNewAt, parts: [edge] })
    return
  }
  known.flows += edge.flows
  known.parts.push(edge)
  known.firstSeenAt = earlier(known.firstSeenAt, edge.firstSeenAt)
  known.lastNewAt = later(known.lastNewAt, edge.lastNewAt)
}

const earlier = (one: string | null, other: string | null) =>
  one !== null && (other === null || one < other) ? one : other
const later = (one: string | null, other: string | null) =>
  one !== null && (other === null || one > other) ? one : other

type Limited = Pick<Graph, 'nodes' | 'edges' | 'hiddenNodes' | 'hiddenEdges'>

/** Keeps the largest items. Ties are ordered by name, so that a poll does not change the choice. */
function limit(nodes: readonly MapNode[], edges: readonly MapEdge[], limits: GraphLimits): Limited {
  const bySize = [...nodes].sort(largestFirst)
  const shown = new Set(bySize.slice(0, limits.nodes).map(({ id }) => id))
  const [possible, orphaned] = split(edges, ({ from, to }) => shown.has(from) && shown.has(to))
  possible.sort(largestFirst)
  return {
    nodes: bySize.slice(0, limits.nodes),
    hiddenNodes: bySize.slice(limits.nodes),
    edges: possible.slice(0, limits.edges),
    hiddenEdges: [...possible.slice(limits.edges), ...orphaned.sort(largestFirst)],
  }
}

type Sized = { readonly id: string; readonly flows: number }
const largestFirst = (one: Sized, other: Sized) => other.flows - one.flows || (one.id < other.id ? -1 : 1)

function split<T>(all: readonly T[], test: (one: T) => boolean): [T[], T[]] {
  const [yes, no]: [T[], T[]] = [[], []]
  for (const one of all) (test(one) ? yes : no).push(one)
  return [yes, no]
}

export const flowsOf = (edges: readonly { readonly flows: number }[]) =>
  edges.reduce((sum, { flows }) => sum + flows, 0)

/** The ports of a drawn edge, those with the most flows first: `8080/TCP`. */
export function portsOf({ parts }: MapEdge): readonly string[] {
  const flows = new Map<string, number>()
  for (const { port, protocol, flows: count } of parts) {
    const text = `${port ?? 'no port'}/${protocol ?? '?'}`
    flows.set(text, (flows.get(text) ?? 0) + count)
  }
  return [...flows].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).map(([text]) => text)
}
