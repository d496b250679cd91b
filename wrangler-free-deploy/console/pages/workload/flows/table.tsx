/** Edges as a table. For callers or callees it shows the peer, otherwise both sides. */
import type { ComponentChildren } from 'preact'
import { flowsQuery } from '../../../api/edge.ts'
import type { Commands } from '../../../parts/copy-as.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, Count, Workload } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { href } from '../../../place.ts'
import type { Named } from '../name.ts'
import { type Direction, type Edge, isOf, peerOf, type Side, sideText, verdictText, workloadOfSide } from './edges.ts'

export function EdgeTable({
  name,
  workload,
  edges,
  direction,
  commands,
  empty,
}: {
  name: string
  workload: Named
  edges: readonly Edge[]
  /** Set if the workload is on the same side of all edges. */
  direction?: Direction
  commands?: Commands
  empty: ComponentChildren
}) {
  return (
    <Table
      name={name}
      rows={edges}
      keyOf={keyOf}
      columns={[...(direction === undefined ? sidesOf(workload) : [peerColumn(direction)]), ...COLUMNS]}
      empty={empty}
      {...(commands && { commands })}
    />
  )
}

const keyOf = ({ from, to, port, protocol, verdict }: Edge) =>
  [sideText(from), sideText(to), port, protocol, verdict].join(' ')

export function SideText({ side }: { side: Side }) {
  const named = workloadOfSide(side)
  if (named !== null) return <Workload {...named} query={{ tab: 'flows' }} />
  return (
    <>
      {side.namespace !== null && (
        <span class="faint">
          <bdi>{side.namespace}</bdi>/
        </span>
      )}
      <bdi>{side.name ?? side.ip ?? ''}</bdi> <span class="kind">{side.kind}</span>
    </>
  )
}

const peerColumn = (direction: Direction): Column<Edge> => ({
  title: direction === 'callers' ? 'Caller' : 'Callee',
  cell: (edge) => <SideText side={peerOf(edge, direction)} />,
  text: (edge) => sideText(peerOf(edge, direction)),
})

const sidesOf = (workload: Named): readonly Column<Edge>[] => [
  {
    title: 'From',
    cell: ({ from }) => (isOf(from, workload) ? <span class="faint">this workload</span> : <SideText side={from} />),
    text: ({ from }) => sideText(from),
  },
  {
    title: 'To',
    cell: ({ to }) => (isOf(to, workload) ? <span class="faint">this workload</span> : <SideText side={to} />),
    text: ({ to }) => sideText(to),
  },
]

const seenText = (seenBy: readonly string[]): string =>
  seenBy.length > 1 ? 'both sides' : seenBy[0] === 'from' ? 'caller' : seenBy[0] === 'to' ? 'callee' : 'not known'

const COLUMNS: readonly Column<Edge>[] = [
  {
    title: 'Port',
    cell: ({ port, protocol }) => `${port ?? '?'}/${protocol ?? '?'}`,
    text: ({ port, protocol }) => `${port ?? '?'}/${protocol ?? '?'}`,
  },
  {
    title: 'Verdict',
    cell: ({ verdict }) => <Badge tone={verdict === 'DROP' ? 'bad' : 'plain'}>{verdictText(verdict)}</Badge>,
    text: ({ verdict }) => verdict,
  },
  {
    title: 'Flows',
    cell: (edge) => <Count value={edge.flows} to={href(['flows'], flowsQuery(edge))} />,
    text: ({ flows }) => flows,
    isNumber: true,
  },
  { title: 'Reported by', cell: ({ seenBy }) => seenText(seenBy), text: ({ seenBy }) => seenText(seenBy) },
  {
    title: 'First flow',
    cell: ({ firstSeenAt }) => <Ago at={firstSeenAt} />,
    text: ({ firstSeenAt }) => firstSeenAt,
  },
  {
    title: 'Newest flow',
    cell: ({ lastNewAt }) => <Ago at={lastNewAt} />,
    text: ({ lastNewAt }) => lastNewAt,
  },
]
