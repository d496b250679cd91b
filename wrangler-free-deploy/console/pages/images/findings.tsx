/** The findings of an image, the most severe first, and the reports from which they come. */
import { type Answer, addressOf, type Params } from '../../api/client.ts'
import { itemsOf, usePages } from '../../api/query.ts'
import { DecisionBadge } from '../../parts/decision.tsx'
import { DownloadButton } from '../../parts/download.tsx'
import { FilterBar } from '../../parts/filter-bar.tsx'
import {
  EPSS_MIN,
  FIXABLE,
  flagsOf,
  IN_USE,
  KEV,
  PACKAGE,
  SEVERITY,
  TIER,
  useListFilter,
  VULN_ID,
  vulnerabilityFieldOf,
} from '../../parts/list-filter.ts'
import { counted } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { Epss, InUse, Kev, TierBadge, VulnerabilityLink } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { SeverityBadge } from '../../parts/text.tsx'
import { href } from '../../place.ts'
import type { TabProps } from './image.tsx'
import { Reports } from './reports.tsx'

type Finding = Answer<'/images/{digest}/vulnerabilities'>['items'][number]
type Query = NonNullable<Params<'/images/{digest}/vulnerabilities'>['query']>

const SOURCE = { name: 'source', meaning: 'the kind of scanner' }
const FIELDS = [SEVERITY, TIER, IN_USE, KEV, FIXABLE, PACKAGE, VULN_ID, EPSS_MIN, SOURCE]
const PAGE_ROWS = 100

export function ImageFindings({ digest }: TabProps) {
  const filter = useListFilter(FIELDS)
  const asked = { path: { digest }, query: { ...filter, limit: PAGE_ROWS } as Query }
  const reading = usePages('/images/{digest}/vulnerabilities', asked)
  const rows = itemsOf(reading)
  return (
    <>
      <div class="row">
        <DownloadButton label="VEX as OpenVEX" url={vexOf(digest, 'openvex')} file={fileOf(digest, 'openvex.json')} />
        <DownloadButton
          label="VEX as CycloneDX"
          url={vexOf(digest, 'cyclonedx')}
          file={fileOf(digest, 'cyclonedx.json')}
        />
        <span class="faint small">The decisions that hold for the image wherever it runs.</span>
      </div>
      <FilterBar fields={FIELDS} fieldOf={vulnerabilityFieldOf} />
      <Shown reading={reading}>
        {({ pages }) => (
          <>
            <Table
              name="Findings"
              rows={rows}
              keyOf={({ id, package: { name }, installedVersion }) => `${id} ${name} ${installedVersion}`}
              columns={COLUMNS}
              paged={reading}
              commands={{
                ctb: ['vulns', digest, ...flagsOf(filter)],
                url: addressOf('/images/{digest}/vulnerabilities', asked),
              }}
              empty={<NoRows isFiltered={Object.keys(filter).length > 0} reports={pages[0]!.reports.length} />}
            />
            <Reports title="Reports" reports={pages[0]!.reports} retired={pages[0]!.retiredGuesses} />
          </>
        )}
      </Shown>
    </>
  )
}

const vexOf = (digest: string, format: 'openvex' | 'cyclonedx') =>
  addressOf('/images/{digest}/vex', { path: { digest }, query: { format } })
const fileOf = (digest: string, end: string) => `${digest.replace(':', '_')}.${end}`

function NoRows({ isFiltered, reports }: { isFiltered: boolean; reports: number }) {
  if (reports === 0)
    return (
      <Empty title="No report is stored">
        No scanner has posted a report of this image: its vulnerabilities are not known. That is not clean.
      </Empty>
    )
  if (isFiltered) return <Empty title="No match">No finding of this image matches the filter.</Empty>
  return (
    <Empty title="The reports name no vulnerability">
      {counted(reports, 'report')} {reports === 1 ? 'answers' : 'answer'} for this image, without any finding.
    </Empty>
  )
}

const COLUMNS: readonly Column<Finding>[] = [
  {
    title: 'Vulnerability',
    cell: ({ id, aliases, title }) => (
      <span title={title ?? undefined}>
        <VulnerabilityLink id={id} aliases={aliases} />
      </span>
    ),
    text: ({ id }) => id,
    width: '11rem',
  },
  {
    title: 'Severity',
    cell: ({ severity }) => <SeverityBadge severity={severity} />,
    text: ({ severity }) => severity,
    width: '6.5rem',
  },
  { title: 'Tier', cell: ({ tier }) => <TierBadge tier={tier} />, text: ({ tier }) => tier, width: '7.5rem' },
  {
    title: 'In use',
    cell: ({ inUseState, inUseDetail }) => <InUse state={inUseState} reason={inUseDetail.reason} />,
    text: ({ inUseState }) => inUseState,
    width: '9rem',
  },
  {
    title: 'Package',
    cell: ({ package: { name, purl } }) => (
      <a href={href(['packages'], { name })} title={purl ?? undefined}>
        {name}
      </a>
    ),
    text: (finding) => finding.package.name,
    width: '13rem',
  },
  {
    title: 'Installed',
    cell: ({ installedVersion }) => <span class="some-room">{installedVersion}</span>,
    text: ({ installedVersion }) => installedVersion,
    width: '10rem',
  },
  {
    title: 'Fixed in',
    cell: ({ fixedVersions }) =>
      fixedVersions.length === 0 ? <span class="faint">none known</span> : fixedVersions.join(', '),
    text: ({ fixedVersions }) => fixedVersions.join(' '),
    width: '12rem',
  },
  {
    title: 'Exploited, EPSS',
    cell: ({ kev, epss }) => (
      <>
        {kev === true && <Kev kev={kev} />} <Epss value={epss} />
      </>
    ),
    text: ({ kev, epss }) => [kev === true ? 'KEV' : '', epss ?? ''].join(' ').trim(),
    width: '8.5rem',
  },
  {
    title: 'Decision',
    cell: ({ decision, decided }) =>
      decision === null ? (
        <span class="faint">none</span>
      ) : (
        <>
          <DecisionBadge decision={decision.decision} /> {!decided && <span class="faint">in a part</span>}
        </>
      ),
    text: ({ decision }) => decision?.decision,
    width: '11rem',
  },
]
