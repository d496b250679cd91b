/** Vulnerabilities of the images that workloads run or ran, the most urgent first. */
import { type Answer, addressOf, type Params } from '../../api/client.ts'
import { itemsOf, usePages, useRead } from '../../api/query.ts'
import { FilterBar } from '../../parts/filter-bar.tsx'
import {
  EPSS_MIN,
  FIXABLE,
  flagsOf,
  IN_USE,
  KEV,
  NAMESPACE,
  PACKAGE,
  SEVERITY,
  TIER,
  useListFilter,
  VULN_ID,
  vulnerabilityFieldOf,
} from '../../parts/list-filter.ts'
import { counted, numberText } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { Epss, InUse, Kev, TierBadge, VulnerabilityLink } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Count, SeverityBadge } from '../../parts/text.tsx'
import { Ago } from '../../parts/time.tsx'
import { href } from '../../place.ts'
import '../lists.css'

type Vulnerability = Answer<'/vulnerabilities'>['items'][number]
type Query = NonNullable<Params<'/vulnerabilities'>['query']>

const RUNNING = {
  name: 'running',
  meaning: 'only those of running workloads',
  values: ['true'],
}
const FIELDS = [SEVERITY, TIER, IN_USE, KEV, FIXABLE, RUNNING, NAMESPACE, PACKAGE, VULN_ID, EPSS_MIN]
const PAGE_ROWS = 100
/** The summary is computed every five minutes; three missed runs mean a fault. */
const OLD_SECONDS = 15 * 60

export default function Vulnerabilities() {
  const filter = useListFilter(FIELDS)
  const asked = { query: { ...filter, limit: PAGE_ROWS } as Query }
  const reading = usePages('/vulnerabilities', asked)
  const rows = itemsOf(reading)
  return (
    <>
      <h1>Vulnerabilities</h1>
      <NotScanned namespace={filter.namespace} />
      <FilterBar fields={FIELDS} fieldOf={vulnerabilityFieldOf} />
      <Shown reading={reading}>
        {({ pages }) => (
          <>
            <Computed page={pages[0]!} />
            <Table
              name="Vulnerabilities"
              rows={rows}
              keyOf={({ id }) => id}
              columns={columnsFor(filter.namespace)}
              paged={reading}
              commands={{ ctb: ['vulns', ...flagsOf(filter)], url: addressOf('/vulnerabilities', asked) }}
              empty={<NoRows isFiltered={Object.keys(filter).length > 0} computedAt={pages[0]!.computedAt} />}
            />
          </>
        )}
      </Shown>
    </>
  )
}

/** The list cannot contain findings of images without a report. */
function NotScanned({ namespace }: { namespace: string | undefined }) {
  const query = { part: 'images', limit: 1, ...(namespace !== undefined && { namespace }) } as const
  const { data } = useRead('/coverage', { query })
  const totals = data?.images?.totals
  if (!totals) return null
  const { total, missing } = totals
  if (total === 0) return <p class="lead">No running image is known{namespace && ` in ${namespace}`}.</p>
  return (
    <p class="lead">
      {missing.no_report === 0
        ? `Each of ${counted(total, 'running image')} has a report. `
        : `Not known for ${counted(missing.no_report, 'running image')} of ${total}: they have no report. `}
      {missing.no_report > 0 && <a href={href(['health'], { part: 'images', namespace })}>Which ones</a>}
    </p>
  )
}

function Computed({ page: { computedAt, staleSeconds } }: { page: Answer<'/vulnerabilities'> }) {
  if (computedAt === null) return null
  const isOld = (staleSeconds ?? 0) > OLD_SECONDS
  return (
    <p class={isOld ? 'stale' : 'faint small'}>
      Counted <Ago at={computedAt} />
      {isOld && ': what changed since then is not in the list'}
    </p>
  )
}

function NoRows({ isFiltered, computedAt }: { isFiltered: boolean; computedAt: string | null }) {
  if (computedAt === null)
    return (
      <Empty title="Nothing is counted yet">
        The first pass of the job supply-chain-refresh has not ended. Vulnerabilities are not known, not absent.
      </Empty>
    )
  if (isFiltered)
    return <Empty title="No match">No vulnerability of an image in the inventory matches the filter.</Empty>
  return (
    <Empty title="No report names a vulnerability">
      Scanners post reports of images by their digests. Either none has posted a report of an image that workloads run
      or ran, or the reports are empty.
    </Empty>
  )
}

function columnsFor(namespace: string | undefined): readonly Column<Vulnerability>[] {
  const within = namespace === undefined ? {} : { namespace }
  return [
    {
      title: 'Vulnerability',
      cell: ({ id, aliases }) => <VulnerabilityLink id={id} aliases={aliases} />,
      text: ({ id }) => id,
      width: '11rem',
    },
    {
      title: 'Tier',
      cell: ({ tier }) => <TierBadge tier={tier} />,
      text: ({ tier }) => tier,
      width: '7.5rem',
    },
    {
      title: 'Severity',
      cell: ({ severity }) => <SeverityBadge severity={severity} />,
      text: ({ severity }) => severity,
      width: '6.5rem',
    },
    {
      title: 'In use',
      cell: ({ inUseState }) => <InUse state={inUseState} />,
      text: ({ inUseState }) => inUseState,
      width: '9rem',
    },
    {
      title: 'Exploited, EPSS',
      cell: ({ kev, maxEpss }) => (
        <>
          {kev === true && <Kev kev={kev} />} <Epss value={maxEpss} />
        </>
      ),
      text: ({ kev, maxEpss }) => [kev === true ? 'KEV' : '', maxEpss ?? ''].join(' ').trim(),
      width: '8.5rem',
    },
    {
      title: 'Fix',
      cell: ({ fixable }) => (fixable ? 'yes' : <span class="faint">none known</span>),
      text: ({ fixable }) => String(fixable),
      width: '7rem',
    },
    {
      title: 'Packages',
      cell: ({ packages, packageCount }) => <Packages names={packages} count={packageCount} />,
      text: ({ packages }) => packages.join(' '),
      width: '14rem',
    },
    {
      title: 'Running workloads',
      cell: ({ id, runningWorkloads, weakestJoin }) => (
        <>
          {weakestJoin === 'workload_tag' && (
            <Badge tone="warn" title="A count rests on the tag of an image alone, which may have moved.">
              partly guessed
            </Badge>
          )}{' '}
          <Count value={runningWorkloads} to={href(['vulnerability', id], within)} />
        </>
      ),
      text: ({ runningWorkloads }) => runningWorkloads,
      isNumber: true,
      width: '9.5rem',
    },
    {
      title: 'Seen exposed',
      cell: ({ exposedWorkloads }) => <Count value={exposedWorkloads} />,
      text: ({ exposedWorkloads }) => exposedWorkloads,
      isNumber: true,
      width: '7.5rem',
    },
    {
      title: 'Decided',
      cell: ({ decidedWorkloads, workloads }) => <Decided decided={decidedWorkloads} workloads={workloads} />,
      text: ({ decidedWorkloads, workloads }) => `${decidedWorkloads} of ${workloads}`,
      width: '8rem',
    },
  ]
}

function Packages({ names, count }: { names: readonly string[]; count: number }) {
  const more = count - names.length
  return (
    <span class="roomy">
      {names.map((name, index) => (
        <span key={name}>
          {index > 0 && ', '}
          <a href={href(['packages'], { name })}>{name}</a>
        </span>
      ))}
      {more > 0 && <span class="faint"> and {more} more</span>}
    </span>
  )
}

function Decided({ decided, workloads }: { decided: number; workloads: number }) {
  if (decided === 0) return <span class="faint">no</span>
  return (
    <Badge tone={decided === workloads ? 'good' : 'info'}>
      {decided === workloads ? 'all' : `${numberText(decided)} of ${numberText(workloads)}`}
    </Badge>
  )
}
