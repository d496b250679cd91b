/** All edges of the map as rows, including those beyond the limit of the drawing. */

import type { Commands } from '../../parts/copy-as.tsx'
import { Verdict } from '../../parts/edge.tsx'
import { Empty } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Count } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { href, hrefWith } from '../../place.ts'
import type { Graph, MapEdge, MapNode } from './graph.ts'
import { portsOf } from './graph.ts'
import { flowsOfEdge, useMapFilter, workloadOfNode } from './links.ts'
import { NodeLink, portsText } from './panel.tsx'
import type { MapFilter } from './requests.ts'

interface Row {
  readonly edge: MapEdge
  readonly from: MapNode
  readonly to: MapNode
  readonly isDrawn: boolean
  readonly filter: MapFilter
}

export interface EdgeTableProps {
  readonly graph: Graph
  readonly selected: MapNode | null
  readonly commands: Commands
}

export function EdgeTable({ graph, selected, commands }: EdgeTableProps) {
  const filter = useMapFilter()
  const nodes = new Map([...graph.nodes, ...graph.hiddenNodes].map((node) => [node.id, node]))
  const rowOf = (edge: MapEdge, isDrawn: boolean): Row => {
    return { edge, isDrawn, filter, from: nodes.get(edge.from)!, to: nodes.get(edge.to)! }
  }
  const all = [...graph.edges.map((edge) => rowOf(edge, true)), ...graph.hiddenEdges.map((edge) => rowOf(edge, false))]
  const rows = selected === null ? all : all.filter(({ from, to }) => from === selected || to === selected)
  return (
    <Table
      name="Edges of the map"
      rows={rows}
      keyOf={({ edge }) => edge.id}
      columns={COLUMNS}
      commands={commands}
      empty={<Empty title="No edge">No edge has an end at the selected node.</Empty>}
      tools={
        selected !== null && (
          <a href={hrefWith({ selected: null })}>
            Only those of {selected.label}: show all {all.length}
          </a>
        )
      }
    />
  )
}

const nodeColumn = (title: string, nodeOf: (row: Row) => MapNode): Column<Row> => ({
  title,
  cell: (row) => <NodeLink node={nodeOf(row)} />,
  text: (row) => nodeOf(row).id,
  width: '20%',
})

/** More than one if agents do not say of all flows whether they were allowed. */
const verdictsOf = ({ parts }: MapEdge) => [...new Set(parts.map(({ verdict }) => verdict))]

const COLUMNS: readonly Column<Row>[] = [
  nodeColumn('From', ({ from }) => from),
  nodeColumn('To', ({ to }) => to),
  {
    title: 'Ports',
    cell: ({ edge }) => portsText(edge),
    text: ({ edge }) => portsOf(edge).join(' '),
    width: '17%',
  },
  {
    title: 'Verdict',
    cell: ({ edge }) => verdictsOf(edge).map((one) => <Verdict key={one} verdict={one} />),
    text: ({ edge }) =>
      verdictsOf(edge)
        .map((one) => one ?? 'unknown')
        .join(' '),
    width: '6.5rem',
  },
  {
    title: 'Flows',
    cell: ({ edge, from, to, filter }) => <Count value={edge.flows} to={flowsOfEdge(edge, from, to, filter)} />,
    text: ({ edge }) => edge.flows,
    isNumber: true,
    width: '5.5rem',
  },
  {
    title: 'First seen',
    cell: ({ edge }) => <Time at={edge.firstSeenAt} />,
    text: ({ edge }) => edge.firstSeenAt,
    width: '8.5rem',
  },
  {
    title: 'Newest new flow',
    cell: ({ edge }) => <Ago at={edge.lastNewAt} />,
    text: ({ edge }) => edge.lastNewAt,
    width: '8.5rem',
  },
  {
    title: 'Focus',
    cell: (row) => <FocusLink {...row} />,
    width: '5rem',
  },
]

function FocusLink({ from, to }: Row) {
  const workload = workloadOfNode(to) ?? workloadOfNode(from)
  if (workload === null) return null
  const { namespace, kind, name } = workload
  return (
    <a href={href(['focus', namespace, kind, name])} aria-label={`Focus on ${namespace}/${name}`}>
      Focus
    </a>
  )
}
