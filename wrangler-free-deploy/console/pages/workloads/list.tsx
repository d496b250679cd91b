/** All workloads with their posture, as last computed by the job. */
import { addressOf, type Item, type Params } from '../../api/client.ts'
import { itemsOf, usePages } from '../../api/query.ts'
import { FilterBar, type FilterField } from '../../parts/filter-bar.tsx'
import { verdictWord } from '../../parts/finding-words.ts'
import { flagsOf, NAMESPACE, useListFilter } from '../../parts/list-filter.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { VerdictBadge } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Count, Workload } from '../../parts/text.tsx'
import { Ago, localText } from '../../parts/time.tsx'
import { href } from '../../place.ts'
import { STATUS_TONES } from '../workload/words.ts'
import { findingsText } from './words.ts'
import './workloads.css'

const PATH = '/workloads'
/** 100 rows are about 70 kB of JSON, 4 kB compressed. */
const PAGE_ROWS = 100
/** Number of findings shown; all of them are in the tooltip and in the CSV. */
const SHOWN_SEVERITIES = 2

type Listed = Item<typeof PATH>
type Query = NonNullable<Params<typeof PATH>['query']>
type Status = Listed['posture']['status']

const STATUSES: readonly Status[] = ['risk', 'warn', 'ok', 'unknown']

const FIELDS: readonly FilterField[] = [
  { name: 'search', meaning: 'a part of the name' },
  NAMESPACE,
  {
    name: 'kind',
    meaning: 'the kind, exactly',
    values: ['Deployment', 'StatefulSet', 'DaemonSet', 'CronJob', 'Job', 'Pod'],
  },
  { name: 'status', meaning: 'the posture', values: STATUSES },
  { name: 'include_gone', meaning: 'also those without a live pod', values: ['true'] },
]

export default function Workloads() {
  const filter = useListFilter(FIELDS)
  const params = { query: { ...filter, limit: PAGE_ROWS } as Query }
  const reading = usePages(PATH, params)
  const rows = itemsOf(reading)
  const isFiltered = Object.keys(filter).length > 0
  return (
    <>
      <h1>Workloads</h1>
      <p class="lead">
        By namespace, kind and name, as the job stored them last. Unknown is never ok: it says that nobody looked, or
        that it cannot be told.
      </p>
      <FilterBar fields={FIELDS} fieldOf={() => 'search'} />
      <Shown reading={reading}>
        {() => (
          <div class="workload-list">
            <Table
              name="Workloads"
              rows={rows}
              columns={COLUMNS}
              keyOf={({ namespace, kind, name }) => `${namespace}/${kind}/${name}`}
              paged={reading}
              commands={{ ctb: ['workloads', ...flagsOf(filter)], url: addressOf(PATH, params) }}
              empty={
                isFiltered ? (
                  <Empty title="No workload matches">
                    Workloads without a live pod are left out, unless <code>include_gone:true</code> is given.
                  </Empty>
                ) : (
                  <Empty title="No profile is stored yet">
                    A job computes the profiles of workloads, the first a minute after the broker starts, from the pods
                    that agents post.
                  </Empty>
                )
              }
            />
          </div>
        )}
      </Shown>
    </>
  )
}

function StatusBadge({ status, title }: { status: Status; title?: string }) {
  return (
    <Badge tone={STATUS_TONES[status]} {...(title !== undefined && { title })}>
      {status}
    </Badge>
  )
}

const to = ({ namespace, kind, name }: Listed, tab: string) => href(['workload', namespace, kind, name], { tab })

function dimension(title: string, of: (row: Listed) => Status, tab: string): Column<Listed> {
  return {
    title,
    cell: (row) => (
      <a class="plain-link" href={to(row, tab)}>
        <StatusBadge status={of(row)} />
      </a>
    ),
    text: of,
    width: '6.5rem',
  }
}

const COLUMNS: readonly Column<Listed>[] = [
  {
    title: 'Workload',
    cell: ({ namespace, kind, name }) => <Workload namespace={namespace} kind={kind} name={name} />,
    text: ({ namespace, kind, name }) => `${namespace}/${kind}/${name}`,
    width: '22rem',
  },
  {
    title: 'Posture',
    cell: ({ posture: { status, unknownDimensions }, lastError, computedAt }) => (
      <>
        <StatusBadge
          status={status}
          title={`${
            unknownDimensions.length === 0 ? 'All of it is known' : `Not known: ${unknownDimensions.join(', ')}`
          }. ${computedAt === null ? 'Never computed.' : `Computed ${localText(computedAt)}.`}`}
        />
        {lastError !== null && (
          <>
            {' '}
            <Badge tone="warn" title={`The newest attempt failed: ${lastError}`}>
              not renewed
            </Badge>
          </>
        )}
      </>
    ),
    text: ({ posture: { status } }) => status,
    width: '9rem',
  },
  {
    title: 'Findings',
    cell: ({ findingCounts }) => (
      <span class="number" title={findingsText(findingCounts)}>
        {findingsText(findingCounts, SHOWN_SEVERITIES)}
      </span>
    ),
    text: ({ findingCounts }) => findingsText(findingCounts),
    width: '16rem',
  },
  {
    title: 'Drift',
    // Hardly any workload has an export to compare with.
    cell: (row) =>
      row.drift?.count === 0 ? (
        <span class="faint">none found</span>
      ) : (
        <Count value={row.drift?.count} to={to(row, '')} />
      ),
    text: ({ drift }) => drift?.count,
    isNumber: true,
    width: '6.5rem',
  },
  dimension('Network', ({ dimensions }) => dimensions.network.status, 'flows'),
  dimension('Syscalls', ({ dimensions }) => dimensions.syscalls.status, 'seccomp'),
  dimension('Pod security', ({ dimensions }) => dimensions.podSecurity.status, ''),
  dimension('Images', ({ dimensions }) => dimensions.images.status, 'vulnerabilities'),
  dimension('Compute', ({ dimensions }) => dimensions.compute.status, 'compute'),
  {
    title: 'Signature',
    cell: (row) => {
      const { signature } = row.dimensions.images
      return (
        <a class="plain-link" href={to(row, 'trust')}>
          <VerdictBadge verdict={signature} />
        </a>
      )
    },
    text: ({ dimensions }) => verdictWord(dimensions.images.signature).word,
    width: '8.5rem',
  },
  {
    title: 'Changed',
    cell: ({ lastChangedAt }) => <Ago at={lastChangedAt} />,
    text: ({ lastChangedAt }) => lastChangedAt,
    width: '7rem',
  },
]
