/** All nodes: whether they report, and how many pods they run. */
import { type Answer, addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Count } from '../../parts/text.tsx'
import { Ago, durationText } from '../../parts/time.tsx'
import { href } from '../../place.ts'
import '../lists.css'

const MS_PER_SECOND = 1_000

type Node = Answer<'/node/status'>['nodes'][number]

export default function Nodes() {
  const reading = useRead('/node/status', {})
  return (
    <>
      <h1>Nodes</h1>
      <Shown reading={reading}>
        {({ nodes, staleAfterSecs }) => (
          <>
            <p class="lead">
              {nodes.filter(({ stale }) => stale).length} of {nodes.length} nodes are silent:{' '}
              {`no post of a pod came of them for ${durationText(staleAfterSecs * MS_PER_SECOND)}.`}
            </p>
            <Table
              name="Nodes"
              rows={[...nodes].sort((one, other) => Number(other.stale) - Number(one.stale))}
              keyOf={({ node }) => node}
              columns={COLUMNS}
              commands={{ ctb: ['nodes'], url: addressOf('/node/status', {}) }}
              empty={
                <Empty title="No node has reported">
                  Agents post what they see of their node, and none has done so yet.
                </Empty>
              }
            />
          </>
        )}
      </Shown>
    </>
  )
}

const COLUMNS: readonly Column<Node>[] = [
  {
    title: 'Node',
    cell: ({ node }) => (
      <a class="some-room" href={href(['node', node])}>
        {node}
      </a>
    ),
    text: ({ node }) => node,
  },
  {
    title: 'State',
    cell: ({ stale }) => (stale ? <Badge tone="bad">silent</Badge> : <Badge tone="good">reports</Badge>),
    text: ({ stale }) => (stale ? 'silent' : 'reports'),
  },
  {
    title: 'Live pods',
    cell: ({ alivePods }) => <Count value={alivePods} />,
    text: ({ alivePods }) => alivePods,
    isNumber: true,
  },
  {
    title: 'Newest post of a pod',
    cell: ({ lastPodPostAt }) => <Ago at={lastPodPostAt} />,
    text: ({ lastPodPostAt }) => lastPodPostAt,
  },
  {
    title: 'Newest heartbeat',
    cell: ({ lastHeartbeatAt }) => <Ago at={lastHeartbeatAt} />,
    text: ({ lastHeartbeatAt }) => lastHeartbeatAt,
  },
]
