/** Syscalls that the kernel denied or logged because of a seccomp profile. */
import { addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { FilterBar } from '../../parts/filter-bar.tsx'
import { flagsOf, NAMESPACE, useListFilter } from '../../parts/list-filter.ts'
import { counted } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Count, Workload } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { href, usePlace } from '../../place.ts'
import { type Denial, useDenials } from './use-denials.ts'
import '../lists.css'

const KIND = {
  name: 'kind',
  meaning: 'a kind of workloads',
  values: ['Deployment', 'StatefulSet', 'DaemonSet', 'CronJob', 'Job', 'Pod'],
}
const WORKLOAD = { name: 'workload', meaning: 'the exact name of a workload' }
const FIELDS = [NAMESPACE, KIND, WORKLOAD]
const MAX_ROWS = 500

export default function Denials() {
  const filter = useListFilter(FIELDS)
  const { query } = usePlace()
  const { reading, params } = useDenials(filter, query.get('since'), MAX_ROWS)
  const { since } = params.query
  return (
    <>
      <h1>Denials by the kernel</h1>
      <NotWatched />
      {query.has('until') && (
        <p class="note">Only the beginning of the time window counts here: denials up to now are listed.</p>
      )}
      <FilterBar fields={FIELDS} fieldOf={(word) => (/^[A-Z]/.test(word) ? 'kind' : 'namespace')} />
      <Shown reading={reading}>
        {(rows) => (
          <>
            {rows.length === MAX_ROWS && (
              <p class="stale">These are the {MAX_ROWS} that were seen last; there are more. Narrow the filter.</p>
            )}
            <Table
              name="Denials"
              rows={rows}
              keyOf={({ id }) => String(id)}
              columns={COLUMNS}
              commands={{
                ctb: ['seccomp', 'denials', ...flagsOf(filter), ...(since === undefined ? [] : ['--since', since])],
                url: addressOf('/seccomp/denials', params),
              }}
              empty={
                <Empty title="No denial is stored">
                  {Object.keys(filter).length > 0 || since !== undefined
                    ? 'None matches the filter and the time window.'
                    : 'That says something only of nodes that watch for denials.'}
                </Empty>
              }
            />
          </>
        )}
      </Shown>
    </>
  )
}

function NotWatched() {
  const { data } = useRead('/coverage', { query: { part: 'nodes', limit: 1 } })
  const totals = data?.nodes?.totals
  if (!totals) return null
  const { total, missing } = totals
  if (total === 0) return <p class="lead">No node has reported: whether anything is denied is not known.</p>
  if (missing.denials_not_watched === 0) return <p class="lead">All {counted(total, 'node')} watch for denials.</p>
  return (
    <p class="lead">
      Not known for {missing.denials_not_watched} of {counted(total, 'node')}, which do not watch.{' '}
      <a href={href(['health'], { part: 'nodes' })}>Which ones</a>
    </p>
  )
}

const COLUMNS: readonly Column<Denial>[] = [
  {
    title: 'Workload',
    cell: ({ podNamespace, workloadKind, workloadName }) =>
      workloadKind === null || workloadName === null ? (
        <span class="faint">not known, in {podNamespace}</span>
      ) : (
        <Workload namespace={podNamespace} kind={workloadKind} name={workloadName} query={{ tab: 'seccomp' }} />
      ),
    text: ({ podNamespace, workloadKind, workloadName }) =>
      `${podNamespace}/${workloadKind ?? ''}/${workloadName ?? ''}`,
    width: '20rem',
  },
  {
    title: 'Syscall',
    cell: ({ syscall }) => <code class="nowrap">{syscall}</code>,
    text: ({ syscall }) => syscall,
    width: '10rem',
  },
  {
    title: 'Action',
    cell: ({ action }) => <span class="nowrap">{action}</span>,
    text: ({ action }) => action,
    width: '10rem',
  },
  {
    title: 'Events',
    cell: ({ count }) => <Count value={count} />,
    text: ({ count }) => count,
    isNumber: true,
    width: '7rem',
  },
  {
    title: 'Last seen',
    cell: ({ lastSeen }) => <Ago at={lastSeen} />,
    text: ({ lastSeen }) => lastSeen,
    width: '8rem',
  },
  {
    title: 'First seen',
    cell: ({ firstSeen }) => <Time at={firstSeen} />,
    text: ({ firstSeen }) => firstSeen,
    width: '10rem',
  },
  { title: 'Pod', cell: ({ podName }) => podName, text: ({ podName }) => podName, width: '18rem' },
  {
    title: 'Node',
    cell: ({ nodeName }) =>
      nodeName === null ? (
        '–'
      ) : (
        <a class="some-room" href={href(['node', nodeName])}>
          {nodeName}
        </a>
      ),
    text: ({ nodeName }) => nodeName,
    width: '11rem',
  },
]
