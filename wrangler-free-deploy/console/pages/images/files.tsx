/** The files of an image that ran, over all its workloads. */
import { useMemo } from 'preact/hooks'
import { type Answer, addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { isUnshipped, originText } from '../../parts/file-words.ts'
import { counted } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Count } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { hrefWith, usePlace } from '../../place.ts'
import type { TabProps } from './image.tsx'

type Runtime = Answer<'/images/{digest}/runtime'>
type Entry = Runtime['entries'][number]

const PAGE_ROWS = 500

export function ImageFiles({ digest, image }: TabProps) {
  const { query } = usePlace()
  const after = query.get('after')
  const asked = useMemo(
    () => ({ path: { digest }, query: { limit: PAGE_ROWS, ...(after !== null && { after }) } }),
    [digest, after],
  )
  const reading = useRead('/images/{digest}/runtime', asked)
  return (
    <Shown reading={reading}>
      {({ entries, coverage, nextCursor }) => (
        <>
          <Watched coverage={coverage} isInInventory={image !== null} />
          <Table
            name="Files that ran"
            rows={entries}
            keyOf={({ kind, path }) => `${kind}:${path}`}
            columns={COLUMNS}
            commands={{
              ctb: ['get', `/images/${digest}/runtime`],
              url: addressOf('/images/{digest}/runtime', asked),
            }}
            empty={
              <Empty title="No file was seen to run">
                An empty list says that nothing was seen, not that nothing ran.
              </Empty>
            }
          />
          <p class="row">
            {after !== null && <a href={hrefWith({ after: null })}>First files</a>}
            {nextCursor !== null && <a href={hrefWith({ after: nextCursor })}>Next files</a>}
          </p>
        </>
      )}
    </Shown>
  )
}

function Watched({ coverage, isInInventory }: { coverage: Runtime['coverage']; isInInventory: boolean }) {
  const { instances, workloads, instancesWithDrops, librariesTracked, windowHours, lastHeartbeat } = coverage
  if (instances === 0)
    return (
      <p class="lead">
        No container of the image was watched in the last {windowHours} h
        {isInInventory ? ': what ran since then is not known.' : '.'}
      </p>
    )
  return (
    <p class="lead">
      {counted(instances, 'container')} of {counted(workloads, 'workload')} {instances === 1 ? 'was' : 'were'} watched
      in the last {windowHours} h, last heartbeat <Ago at={lastHeartbeat} />.
      {!librariesTracked && ' Not all report libraries.'}
      {instancesWithDrops > 0 && ` ${counted(instancesWithDrops, 'container')} lost events.`}
    </p>
  )
}

const COLUMNS: readonly Column<Entry>[] = [
  {
    title: 'File',
    cell: ({ path, pathComplete }) => (
      <>
        <code title={path}>{path}</code> {!pathComplete && <Badge title="The path was cut.">cut</Badge>}
      </>
    ),
    text: ({ path }) => path,
    width: '26rem',
  },
  {
    title: 'How',
    cell: ({ kind }) => (kind === 'exec' ? 'executed' : 'loaded'),
    text: ({ kind }) => kind,
    width: '7rem',
  },
  {
    title: 'From',
    cell: ({ origin }) =>
      isUnshipped(origin) ? <Badge tone="bad">{originText(origin)}</Badge> : <span>{originText(origin)}</span>,
    text: ({ origin }) => origin,
    width: '14rem',
  },
  {
    title: 'Workloads',
    cell: ({ workloads }) => <Count value={workloads} />,
    text: ({ workloads }) => workloads,
    isNumber: true,
    width: '7rem',
  },
  {
    title: 'First seen',
    cell: ({ firstSeen }) => <Time at={firstSeen} />,
    text: ({ firstSeen }) => firstSeen,
    width: '10rem',
  },
  {
    title: 'Last seen',
    cell: ({ lastSeen }) => <Ago at={lastSeen} />,
    text: ({ lastSeen }) => lastSeen,
    width: '8rem',
  },
]
