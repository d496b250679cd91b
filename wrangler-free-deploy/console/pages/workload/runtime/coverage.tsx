/** The time since which each container is watched, and reasons why its list of files may be incomplete. */

import { reasonText } from '../../../parts/reason-words.ts'
import { Empty } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, Count, Digest } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { Because } from '../because.tsx'
import type { WatchedContainer } from './rows.ts'

export function CoverageTable({ watched }: { watched: readonly WatchedContainer[] }) {
  return (
    <Table
      name="Coverage of containers"
      rows={watched}
      keyOf={({ container, digest }) => `${container} ${digest}`}
      columns={COLUMNS}
      empty={<Empty title="No container runs that could be watched" />}
    />
  )
}

const reasonOf = ({ coverage }: WatchedContainer): string =>
  coverage === null ? 'no_runtime_data' : (coverage.reason ?? '')

const COLUMNS: readonly Column<WatchedContainer>[] = [
  { title: 'Container', cell: ({ container }) => container, text: ({ container }) => container },
  {
    title: 'Image',
    cell: ({ digest }) => (digest === '' ? <span class="faint">not known</span> : <Digest digest={digest} />),
    text: ({ digest }) => digest,
  },
  {
    title: 'List',
    cell: ({ coverage }) =>
      coverage === null ? (
        <Badge tone="warn">not watched</Badge>
      ) : coverage.covered ? (
        <Badge tone="good">complete for {coverage.windowHours} h</Badge>
      ) : (
        <Badge tone="warn">may be incomplete</Badge>
      ),
    text: ({ coverage }) => (coverage === null ? 'not watched' : coverage.covered ? 'complete' : 'may be incomplete'),
  },
  {
    title: 'Why',
    cell: (row) => {
      const reason = reasonOf(row)
      const pods = row.coverage?.silentPods ?? []
      return (
        <>
          {reason === '' ? (
            <span class="faint">–</span>
          ) : (
            <Because reason={reason} detail={row.coverage?.reasonDetail} />
          )}
          {pods.length > 0 && (
            <span class="faint" title={pods.join(', ')}>
              {' '}
              Nothing is said about {row.coverage?.silentPodCount ?? pods.length} pods whose agent fell silent.
            </span>
          )}
        </>
      )
    },
    text: (row) => (reasonOf(row) === '' ? '' : reasonText(reasonOf(row))),
  },
  {
    title: 'Watched since',
    cell: ({ coverage }) => <Ago at={coverage?.observedSince} />,
    text: ({ coverage }) => coverage?.observedSince,
  },
  {
    title: 'Libraries',
    cell: ({ coverage }) => (coverage === null ? '?' : coverage.librariesTracked ? 'watched' : 'not watched'),
    text: ({ coverage }) => (coverage === null ? '' : String(coverage.librariesTracked)),
  },
  {
    title: 'Instances',
    cell: ({ coverage }) => <Count value={coverage?.instances} />,
    text: ({ coverage }) => coverage?.instances,
    isNumber: true,
  },
  {
    title: 'Last heartbeat',
    cell: ({ coverage }) => <Ago at={coverage?.lastHeartbeat} />,
    text: ({ coverage }) => coverage?.lastHeartbeat,
  },
]
