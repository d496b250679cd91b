/** Coverage gaps by name: images, containers, nodes or workloads of which something is not known. */
import type { ComponentChildren } from 'preact'
import { type Answer, addressOf, type Params } from '../../api/client.ts'
import { type PagedReading, usePages, useRead } from '../../api/query.ts'
import { FilterBar } from '../../parts/filter-bar.tsx'
import { causeText, gapText } from '../../parts/gap-words.ts'
import { flagsOf, NAMESPACE, useListFilter } from '../../parts/list-filter.ts'
import { numberText } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { VerdictBadge } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Count, Digest, Workload } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { href } from '../../place.ts'

type Coverage = Answer<'/coverage'>
export const PARTS = ['images', 'containers', 'nodes', 'workloads'] as const
export type PartName = (typeof PARTS)[number]
type Part<P extends PartName> = NonNullable<Coverage[P]>
type Item<P extends PartName> = Part<P>['items'][number]
type Query = NonNullable<Params<'/coverage'>['query']>

const FIELDS = [NAMESPACE]
const PAGE_ROWS = 100

export function Gaps({ part }: { part: PartName }) {
  const filter = useListFilter(FIELDS)
  const asked = { query: { part, ...filter, limit: PAGE_ROWS } as Query }
  // Counting judges the whole cluster, so the rows do not wait for it.
  const uncounted = { query: { ...asked.query, totals: false } as Query }
  const answer = usePages('/coverage', uncounted, { nextOf: (page) => page[part]?.nextAfter ?? null })
  const counted = useRead('/coverage', { query: { part, ...filter, limit: 1 } as Query })
  const commands = {
    ctb: ['coverage', '--part', part, ...flagsOf(filter)],
    url: addressOf('/coverage', asked),
  }
  return (
    <>
      <FilterBar fields={FIELDS} fieldOf={() => 'namespace'} />
      <Shown reading={answer}>
        {() => (
          <>
            {counted.data ? (
              <Totals totals={counted.data[part]?.totals ?? null} part={part} />
            ) : (
              <p class="lead">
                {counted.error === null ? `Counting all ${part}…` : `The ${part} could not be counted.`}
              </p>
            )}
            {part === 'images' && (
              <Rows part={part} answer={answer} columns={IMAGES} keyOf={imageKey} commands={commands} />
            )}
            {part === 'containers' && (
              <Rows part={part} answer={answer} columns={CONTAINERS} keyOf={containerKey} commands={commands} />
            )}
            {part === 'nodes' && (
              <Rows part={part} answer={answer} columns={NODES} keyOf={nodeKey} commands={commands} />
            )}
            {part === 'workloads' && (
              <Rows part={part} answer={answer} columns={WORKLOADS} keyOf={workloadKey} commands={commands} />
            )}
          </>
        )}
      </Shown>
    </>
  )
}

interface RowsProps<P extends PartName> {
  readonly part: P
  readonly answer: PagedReading<Coverage>
  readonly columns: readonly Column<Item<P>>[]
  readonly keyOf: (item: Item<P>) => string
  readonly commands: { readonly ctb: readonly string[]; readonly url: string }
}

function Rows<P extends PartName>({ part, answer, columns, keyOf, commands }: RowsProps<P>) {
  const rows = (answer.data?.pages ?? []).flatMap((page) => (page[part]?.items ?? []) as Item<P>[])
  return (
    <Table
      name={`Not known of ${part}`}
      rows={rows}
      keyOf={keyOf}
      columns={columns}
      paged={answer}
      commands={commands}
      empty={
        <Empty title="Nothing is missing">Of all {part} that are known, everything is known that is asked here.</Empty>
      }
    />
  )
}

function Totals({ totals, part }: { totals: Part<PartName>['totals'] | null; part: PartName }) {
  if (totals === null)
    return <p class="lead">There are too many {part} to count. Filter by namespace, or read page by page.</p>
  const gaps = Object.entries(totals.missing).filter(([, count]) => count > 0)
  if (totals.total === 0) return <p class="lead">No {part} are known.</p>
  return (
    <p class="lead">
      Of {numberText(totals.total)} {part} that run or report, everything is known of {numberText(totals.known)}.{' '}
      {gaps.length > 0 &&
        `Not known: ${gaps.map(([name, count]) => `${gapText(name)} (${numberText(count)})`).join(', ')}.`}
    </p>
  )
}

function Missing({ missing }: { missing: readonly string[] }) {
  return (
    <span class="roomy">
      {missing.map((name) => (
        <span key={name}>
          <Badge tone={name === 'silent' || name === 'no_report' ? 'bad' : 'warn'}>{gapText(name)}</Badge>{' '}
        </span>
      ))}
    </span>
  )
}

const missingColumn = <T extends { readonly missing: readonly string[] }>(): Column<T> => ({
  title: 'Not known',
  cell: ({ missing }) => <Missing missing={missing} />,
  text: ({ missing }) => missing.join(' '),
  width: '26rem',
})

interface Detail {
  readonly cause: string
  readonly podName: string | null
  readonly nodeName: string | null
  readonly at: string | null
}

/** The row that is the reason of the gap. */
function Because({ detail }: { detail: Detail | null }): ComponentChildren {
  if (detail === null) return <span class="faint">–</span>
  const { cause, podName, nodeName, at } = detail
  return (
    <span class="roomy">
      {causeText(cause)}
      {podName !== null && <span class="faint"> {podName}</span>}
      {nodeName !== null && (
        <>
          {' '}
          on <a href={href(['node', nodeName])}>{nodeName}</a>
        </>
      )}
      {at !== null && (
        <span class="faint">
          , <Ago at={at} />
        </span>
      )}
    </span>
  )
}

const imageKey = ({ digest }: Item<'images'>) => digest
const IMAGES: readonly Column<Item<'images'>>[] = [
  {
    title: 'Image',
    cell: ({ digest, repository }) => <a href={href(['image', digest])}>{repository ?? 'name not known'}</a>,
    text: ({ repository }) => repository,
    width: '22rem',
  },
  { title: 'Digest', cell: ({ digest }) => <Digest digest={digest} />, text: ({ digest }) => digest, width: '12rem' },
  missingColumn(),
  {
    title: 'Running containers',
    cell: ({ digest, containers }) => <Count value={containers} to={href(['image', digest])} />,
    text: ({ containers }) => containers,
    isNumber: true,
    width: '9.5rem',
  },
  {
    title: 'Newest scan',
    cell: ({ report }) => <Ago at={report?.scannedAt} />,
    text: ({ report }) => report?.scannedAt,
    width: '8rem',
  },
  {
    title: 'Signature',
    cell: ({ signature }) => <VerdictBadge verdict={signature?.verdict ?? null} />,
    text: ({ signature }) => signature?.verdict,
    width: '10rem',
  },
]

const containerKey = ({ namespace, kind, name, container, imageDigest }: Item<'containers'>) =>
  [namespace, kind, name, container, imageDigest].join('/')
const CONTAINERS: readonly Column<Item<'containers'>>[] = [
  {
    title: 'Workload',
    cell: (one) => <Workload {...one} query={{ tab: 'runtime' }} />,
    text: ({ namespace, kind, name }) => `${namespace}/${kind}/${name}`,
    width: '20rem',
  },
  { title: 'Container', cell: ({ container }) => container, text: ({ container }) => container, width: '10rem' },
  missingColumn(),
  {
    title: 'Because',
    cell: ({ reasonDetail }) => <Because detail={reasonDetail} />,
    text: ({ reasonDetail }) => reasonDetail?.cause,
    width: '26rem',
  },
  {
    title: 'Image',
    cell: ({ imageDigest }) =>
      imageDigest === '' ? <span class="faint">not resolved</span> : <Digest digest={imageDigest} />,
    text: ({ imageDigest }) => imageDigest,
    width: '12rem',
  },
  {
    title: 'Watched since',
    cell: ({ observedSince }) => <Time at={observedSince} />,
    text: ({ observedSince }) => observedSince,
    width: '10rem',
  },
]

const nodeKey = ({ node }: Item<'nodes'>) => node
const NODES: readonly Column<Item<'nodes'>>[] = [
  {
    title: 'Node',
    cell: ({ node }) => (
      <a class="some-room" href={href(['node', node])}>
        {node}
      </a>
    ),
    text: ({ node }) => node,
    width: '14rem',
  },
  missingColumn(),
  {
    title: 'Because',
    cell: ({ reasonDetail }) => <Because detail={reasonDetail} />,
    text: ({ reasonDetail }) => reasonDetail?.cause,
    width: '24rem',
  },
  {
    title: 'Live pods',
    cell: ({ alivePods }) => <Count value={alivePods} />,
    text: ({ alivePods }) => alivePods,
    isNumber: true,
    width: '6rem',
  },
  {
    title: 'Watched containers',
    cell: ({ watchedContainers }) => <Count value={watchedContainers} />,
    text: ({ watchedContainers }) => watchedContainers,
    isNumber: true,
    width: '10rem',
  },
  {
    title: 'Newest post of a pod',
    cell: ({ lastPodPostAt }) => <Ago at={lastPodPostAt} />,
    text: ({ lastPodPostAt }) => lastPodPostAt,
    width: '10rem',
  },
  {
    title: 'Newest post of denials',
    cell: ({ drainedAt }) => <Ago at={drainedAt} />,
    text: ({ drainedAt }) => drainedAt,
    width: '11rem',
  },
]

const workloadKey = ({ namespace, kind, name }: Item<'workloads'>) => [namespace, kind, name].join('/')
const WORKLOADS: readonly Column<Item<'workloads'>>[] = [
  {
    title: 'Workload',
    cell: (one) => <Workload {...one} query={{ tab: 'seccomp' }} />,
    text: ({ namespace, kind, name }) => `${namespace}/${kind}/${name}`,
    width: '22rem',
  },
  missingColumn(),
  {
    title: 'Capture level',
    cell: ({ captureLevel }) => captureLevel ?? <span class="faint">nothing recorded</span>,
    text: ({ captureLevel }) => captureLevel,
    width: '9rem',
  },
  {
    title: 'Pods below full',
    cell: ({ incompletePods }) => <Count value={incompletePods} />,
    text: ({ incompletePods }) => incompletePods,
    isNumber: true,
    width: '9rem',
  },
  {
    title: 'Denials',
    cell: ({ denialsReason }) =>
      denialsReason === null ? 'known' : <span class="faint">{DENIAL_REASONS[denialsReason]}</span>,
    text: ({ denialsReason }) => denialsReason,
    width: '20rem',
  },
]

const DENIAL_REASONS: Readonly<Record<NonNullable<Item<'workloads'>['denialsReason']>, string>> = {
  no_node_watching: 'not known: no node watches',
  unattributed_in_cluster: 'not known: too many denials belong to no workload',
  unattributed_denials: 'not known: a denial of the namespace belongs to no workload',
}
