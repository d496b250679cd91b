/** The map: namespaces and who calls whom, of which each opens into its workloads. */
import { useMemo } from 'preact/hooks'
import { addressOf, type Params } from '../../api/client.ts'
import type { Edge } from '../../api/edge.ts'
import { useRead } from '../../api/query.ts'
import { useWindow } from '../../frame/window-picker.tsx'
import { FilterBar } from '../../parts/filter-bar.tsx'
import { FLOW_FIELDS, flowFieldOf, useFlowFilter } from '../../parts/flow-filter.ts'
import { Empty, Shown, Stale } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { go, hrefWith, usePlace } from '../../place.ts'
import { EdgeTable } from './edge-table.tsx'
import { buildGraph, type Graph, type MapNode } from './graph.ts'
import { NodeList } from './node-list.tsx'
import { Narrow, OpenNamespaces } from './notices.tsx'
import { Panel } from './panel.tsx'
import { Picture } from './picture.tsx'
import { askedNamespaces, keptBy, MAX_ANSWER_EDGES, MAX_OPEN } from './requests.ts'
import './map.css'

const NO_EDGES: readonly Edge[] = []

export default function MapPage() {
  const { query } = usePlace()
  const filter = { ...useFlowFilter(), ...useWindow() }
  const open = [...new Set(query.getAll('open'))].slice(0, MAX_OPEN)
  const shared = { ...filter, order: 'flows', limit: MAX_ANSWER_EDGES } as const
  const ofNamespaces: Params<'/flows/edges'> = { query: { ...shared, group: 'namespace' } }
  const ofWorkloads: Params<'/flows/edges'> = { query: { ...shared, namespace: askedNamespaces(open, filter) } }
  const outer = useRead('/flows/edges', ofNamespaces)
  const inner = useRead('/flows/edges', ofWorkloads, { enabled: open.length > 0 })
  // Until the workloads of a namespace are there, it stays closed.
  const opened = open.length > 0 && inner.data !== undefined ? open.join(' ') : ''
  const graph = useMemo(
    () =>
      buildGraph({
        namespaceEdges: outer.data?.items ?? NO_EDGES,
        workloadEdges: opened === '' ? NO_EDGES : inner.data!.items.filter(keptBy(filter)),
        open: new Set(opened.split(' ').filter((one) => one !== '')),
      }),
    [outer.data, opened === '' ? null : inner.data, opened],
  )
  return (
    <>
      <h1>Map</h1>
      <FilterBar fields={FLOW_FIELDS} fieldOf={flowFieldOf} />
      <OpenNamespaces open={open} isReading={open.length > 0 && inner.data === undefined && inner.error === null} />
      {open.length > 0 && inner.error !== null && (
        <Stale reading={{ ...inner, dataUpdatedAt: inner.dataUpdatedAt || Date.now() }} />
      )}
      <Shown reading={outer}>
        {({ asOf, observedSince, unstamped, nextAfter, items }) => (
          <>
            <p class="lead">
              {observedSince === null ? (
                'No flow was ever stored.'
              ) : (
                <>
                  Who opened connections to whom since <Time at={observedSince} />, counted until <Time at={asOf} />. An
                  edge without a new flow for long may still be in use: a living pod reports a flow once.
                </>
              )}
            </p>
            <Narrow
              graph={graph}
              namespaceEdges={items}
              isCut={nextAfter !== null || (opened !== '' && inner.data?.nextAfter !== null)}
              unstamped={Math.max(unstamped, inner.data?.unstamped ?? 0)}
            />
            <Whole graph={graph} hasData={observedSince !== null} url={addressOf('/flows/edges', ofNamespaces)} />
          </>
        )}
      </Shown>
    </>
  )
}

function Whole({ graph, hasData, url }: { graph: Graph; hasData: boolean; url: string }) {
  const { query } = usePlace()
  const selected = query.get('selected')
  const node = graph.nodes.find(({ id }) => id === selected) ?? null
  const select = (one: MapNode | null) => go(hrefWith({ selected: one?.id }), { replace: true })
  const choose = (one: MapNode) => {
    if (one.kind === 'namespace') openNamespace(query, one)
    else select(one)
  }
  if (graph.nodes.length === 0)
    return hasData ? (
      <Empty title="No edge matches">Another filter, or a longer time window, may have some.</Empty>
    ) : (
      <Empty title="No flow was ever stored">Agents post what they see, and none has posted a flow yet.</Empty>
    )
  return (
    <>
      <div class="map">
        <Picture graph={graph} selected={selected} onChoose={choose} />
        <div class="map-side">
          <NodeList nodes={graph.nodes} selected={node} onSelect={select} onChoose={choose} />
          <Panel node={node} graph={graph} />
        </div>
      </div>
      <section class="section" aria-labelledby="map-table">
        <h2 id="map-table">The same as a table</h2>
        <EdgeTable graph={graph} selected={node} url={url} />
      </section>
    </>
  )
}

/** Its node is gone then, so that nothing stays selected. */
function openNamespace(query: URLSearchParams, { namespace }: MapNode): void {
  const open = query.getAll('open')
  if (namespace !== null && !open.includes(namespace)) go(hrefWith({ open: [...open, namespace], selected: null }))
}
