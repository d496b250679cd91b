/** The map: namespaces and the connections between them. A namespace opens into its workloads. */
import { useMemo, useRef } from 'preact/hooks'
import { type Answer, addressOf, type Params } from '../../api/client.ts'
import type { Edge } from '../../api/edge.ts'
import { useRead } from '../../api/query.ts'
import type { Commands } from '../../parts/copy-as.tsx'
import { FilterBar } from '../../parts/filter-bar.tsx'
import { FLOW_FIELDS, flowFieldOf } from '../../parts/flow-filter.ts'
import { Empty, Failure, Shown, Stale } from '../../parts/states.tsx'
import { Time } from '../../parts/time.tsx'
import { go, hrefWith, usePlace } from '../../place.ts'
import { edgeArguments } from './commands.ts'
import { EdgeTable } from './edge-table.tsx'
import { buildGraph, type Graph, type MapNode } from './graph.ts'
import { useMapFilter } from './links.ts'
import { NodeList } from './node-list.tsx'
import { Narrow, OpenNamespaces } from './notices.tsx'
import { Panel } from './panel.tsx'
import { Picture } from './picture.tsx'
import {
  askedNamespaces,
  EXTERNAL,
  MAX_ANSWER_EDGES,
  type MapFilter,
  matchesNamespaces,
  NETWORK_BITS,
  splitOpen,
} from './requests.ts'
import './map.css'

const NO_EDGES: readonly Edge[] = []

/** The map shows no pods, and counting them takes a fifth of the time. */
const withoutPods = ({ query }: Params<'/flows/edges'>) => ({ query: { ...query, count_pods: false } })

export default function MapPage() {
  const { query } = usePlace()
  const filter = useMapFilter()
  const { open: chosen, leftOut } = splitOpen(query.getAll('open'))
  const hasNetworks = chosen.includes(EXTERNAL)
  const shared = { ...filter, order: 'flows', cidr: NETWORK_BITS, limit: MAX_ANSWER_EDGES } as const
  const ofNamespaces: Params<'/flows/edges'> = { query: { ...shared, group: 'namespace' } }
  const outer = useRead('/flows/edges', withoutPods(ofNamespaces))
  const open = chosen.filter((one) => one !== EXTERNAL || hasNamespace(outer.data?.items ?? NO_EDGES, EXTERNAL))
  const ofWorkloads: Params<'/flows/edges'> = { query: { ...shared, namespace: askedNamespaces(open, filter) } }
  const inner = useRead('/flows/edges', withoutPods(ofWorkloads), { enabled: open.length > 0 })
  const copied = open.length > 0 ? ofWorkloads : ofNamespaces
  const commands = { ctb: edgeArguments(copied.query ?? {}), url: addressOf('/flows/edges', copied) }
  const opened = useOpened(open, inner.data, filter)
  const graph = useMemo(() => {
    const namespaceEdges = outer.data?.items ?? NO_EDGES
    return buildGraph({ namespaceEdges, workloadEdges: opened.edges, open: opened.open, hasNetworks })
  }, [outer.data, opened, hasNetworks])
  return (
    <>
      <h1>Map</h1>
      <FilterBar fields={FLOW_FIELDS} fieldOf={flowFieldOf} />
      <OpenNamespaces
        open={chosen}
        leftOut={leftOut}
        isReading={open.length > 0 && inner.data === undefined && inner.error === null}
      />
      {open.length > 0 && inner.data !== undefined && <Stale reading={inner} />}
      {open.length > 0 && inner.data === undefined && inner.error !== null && (
        <Failure error={inner.error} retry={inner.refetch} />
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
                  {open.length > 0 &&
                    ' Flows to a service count as flows to the workload behind it; their list has them under the service.'}
                  {(filter.since ?? filter.until) !== undefined &&
                    ' The numbers are of whole edges, so the flows of an edge in this window may be fewer.'}
                </>
              )}
            </p>
            <Narrow
              graph={graph}
              namespaceEdges={items}
              isCut={nextAfter !== null || (inner.data?.nextAfter ?? null) !== null}
              unstamped={Math.max(unstamped, inner.data?.unstamped ?? 0)}
            />
            <Whole graph={graph} hasData={observedSince !== null} commands={commands} />
          </>
        )}
      </Shown>
    </>
  )
}

interface Opened {
  readonly open: ReadonlySet<string>
  readonly edges: readonly Edge[]
}

const NOTHING_OPEN: Opened = { open: new Set(), edges: NO_EDGES }

/**
 * The open namespaces and their edges. After a change of the choice the previous ones stay until the answer arrives.
 */
function useOpened(open: readonly string[], data: Answer<'/flows/edges'> | undefined, filter: MapFilter): Opened {
  const key = JSON.stringify(filter)
  const now = useMemo(
    () => (data === undefined ? null : { open: new Set(open), edges: data.items.filter(matchesNamespaces(filter)) }),
    [data, key, JSON.stringify(open)],
  )
  const last = useRef<{ readonly key: string; readonly opened: Opened }>({ key, opened: NOTHING_OPEN })
  if (open.length === 0) last.current = { key, opened: NOTHING_OPEN }
  else if (now !== null) last.current = { key, opened: now }
  return last.current.key === key ? last.current.opened : NOTHING_OPEN
}

interface WholeProps {
  readonly graph: Graph
  readonly hasData: boolean
  readonly commands: Commands
}

function Whole({ graph, hasData, commands }: WholeProps) {
  const { query } = usePlace()
  const selected = query.get('selected')
  const node = graph.nodes.find(({ id }) => id === selected) ?? null
  const select = (one: MapNode | null) => go(hrefWith({ selected: one?.id }), { replace: true })
  const choose = (one: MapNode) => {
    if (one.kind === 'namespace' || one.kind === 'external') openNode(query, one)
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
        <EdgeTable graph={graph} selected={node} commands={commands} />
      </section>
    </>
  )
}

/** Opens a namespace. Its workloads replace its node, so the selection is cleared. */
function openNode(query: URLSearchParams, { namespace }: MapNode): void {
  const open = query.getAll('open')
  const name = namespace ?? EXTERNAL
  if (!open.includes(name)) go(hrefWith({ open: [...open, name], selected: null }))
}

/** A namespace may have the same name as the word that opens external networks; then both open. */
const hasNamespace = (edges: readonly Edge[], name: string) =>
  edges.some(({ from, to }) => from.namespace === name || to.namespace === name)
