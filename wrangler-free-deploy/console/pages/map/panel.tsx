/** Details of the selected node. */
import { Badge, Count } from '../../parts/text.tsx'
import { href, hrefWith, usePlace } from '../../place.ts'
import { flowsOf, type Graph, type MapEdge, type MapNode, portsOf } from './graph.ts'
import { flowsOfEdge, flowsOfNode, useMapFilter, workloadOfNode } from './links.ts'
import { EXTERNAL, type MapFilter } from './requests.ts'

const SHOWN_EDGES = 12

const MEANINGS: Readonly<Record<string, string>> = {
  namespace: 'A closed namespace: all of its workloads, pods and services.',
  workload: 'A workload.',
  pod: 'A pod whose workload was not recorded.',
  service: 'A service. It is not known which one workload is behind it.',
  node: 'All machines of the cluster, by their own addresses.',
  external: 'All public addresses that are no pod and no service.',
  network: 'Public addresses of this network that are no pod and no service.',
  unresolved: 'All addresses that are not public, of which nobody said whose they are.',
}

export function Panel({ node, graph }: { node: MapNode | null; graph: Graph }) {
  const filter = useMapFilter()
  if (node === null)
    return <p class="faint map-panel">Select a node of the list, or a workload of the drawing, to see its edges.</p>
  const edges = [...graph.edges, ...graph.hiddenEdges].filter(({ from, to }) => from === node.id || to === node.id)
  const nodes = new Map([...graph.nodes, ...graph.hiddenNodes].map((one) => [one.id, one]))
  edges.sort((one, other) => other.flows - one.flows)
  return (
    <section class="map-panel" aria-labelledby="map-panel-title">
      <h2 id="map-panel-title">
        {node.namespace !== null && node.kind !== 'namespace' && (
          <span class="faint">
            <bdi>{node.namespace}</bdi>/
          </span>
        )}
        <bdi>{node.label}</bdi>
      </h2>
      <p class="faint">
        {MEANINGS[node.kind]}
        {node.kind !== 'network' && node.addresses > 0 && ` ${addressesText(node)}.`}
      </p>
      <Links node={node} filter={filter} />
      <ul class="map-edges">
        {edges.slice(0, SHOWN_EDGES).map((edge) => (
          <EdgeLine key={edge.id} edge={edge} node={node} nodes={nodes} filter={filter} />
        ))}
      </ul>
      {edges.length > SHOWN_EDGES && (
        <p class="faint">
          And {edges.length - SHOWN_EDGES} more with {flowsOf(edges.slice(SHOWN_EDGES))} flows: the table has them.
        </p>
      )}
    </section>
  )
}

function Links({ node, filter }: { node: MapNode; filter: MapFilter }) {
  const { query } = usePlace()
  const workload = workloadOfNode(node)
  const path = workload === null ? null : [workload.namespace, workload.kind, workload.name]
  const flows = flowsOfNode(node, filter)
  return (
    <p class="map-links">
      {path !== null && (
        <>
          <a href={href(['focus', ...path])}>Focus</a>
          <a href={href(['workload', ...path])}>Dossier</a>
          <a href={href(['policy', ...path])}>Policy</a>
        </>
      )}
      {node.kind === 'external' && (
        <a href={hrefWith({ open: [...query.getAll('open'), EXTERNAL], selected: null })}>Open its networks</a>
      )}
      {node.kind === 'namespace' && (
        <a href={hrefWith({ open: [...query.getAll('open'), node.label], selected: null })}>Open its workloads</a>
      )}
      {flows !== null && <a href={flows}>Flows</a>}
    </p>
  )
}

/** External addresses are counted by network. */
function addressesText({ kind, addresses }: MapNode): string {
  if (kind === 'node') return `${addresses} ${addresses === 1 ? 'address' : 'addresses'}`
  return `${addresses} ${addresses === 1 ? 'network' : 'networks'}`
}

interface EdgeLineProps {
  readonly edge: MapEdge
  readonly node: MapNode
  readonly nodes: ReadonlyMap<string, MapNode>
  readonly filter: MapFilter
}

function EdgeLine({ edge, node, nodes, filter }: EdgeLineProps) {
  const [from, to] = [nodes.get(edge.from)!, nodes.get(edge.to)!]
  const isOut = from === node
  const peer = isOut ? to : from
  return (
    <li>
      <span class="faint">{from === to ? 'inside' : isOut ? 'to' : 'from'}</span>{' '}
      {from !== to && <NodeLink node={peer} />} <span class="faint">{portsText(edge)}</span>{' '}
      <Count value={edge.flows} to={flowsOfEdge(edge, from, to, filter)} /> {edge.flows === 1 ? 'flow' : 'flows'}{' '}
      {edge.isDropped && <Badge tone="bad">dropped</Badge>}
    </li>
  )
}

/** Selects a node of the map. */
export function NodeLink({ node }: { node: MapNode }) {
  const { namespace, kind, label } = node
  return (
    <a href={hrefWith({ selected: node.id })}>
      {namespace !== null && kind !== 'namespace' && (
        <span class="faint">
          <bdi>{namespace}</bdi>/
        </span>
      )}
      <bdi>{label}</bdi>
    </a>
  )
}

const SHOWN_PORTS = 3

export function portsText(edge: MapEdge): string {
  const ports = portsOf(edge)
  const more = ports.length - SHOWN_PORTS
  return `${ports.slice(0, SHOWN_PORTS).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}
