/** The reports or SBOMs that apply to an image, and guesses that no longer apply. */
import type { Answer } from '../../api/client.ts'
import { JoinBadge } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Digest } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'

type Page = Answer<'/images/{digest}/vulnerabilities'>
export type Report = Page['reports'][number]

interface ReportsProps {
  readonly title: string
  readonly reports: readonly Report[]
  readonly retired: Page['retiredGuesses']
}

const nameOf = ({ source, repository, tag }: Page['retiredGuesses'][number]) =>
  `The report of ${source} for ${repository}:${tag}`

export function Reports({ title, reports, retired }: ReportsProps) {
  if (reports.length === 0 && retired.length === 0) return null
  return (
    <div class="section">
      <h3 id="reports">{title}</h3>
      <Table
        name={title}
        rows={reports}
        keyOf={({ source, reportDigest }) => `${source} ${reportDigest}`}
        columns={COLUMNS}
        empty={null}
      />
      {retired.length > 0 && (
        <p class="faint">
          {retired.map(nameOf).join('; ')} {retired.length === 1 ? 'no longer answers' : 'no longer answer'}: the tag
          may have moved, and another report has the digest.
        </p>
      )}
    </div>
  )
}

function Trust({ report: { sbomTrust } }: { report: Report }) {
  if (sbomTrust === null) return <span class="faint">–</span>
  return <Badge tone={sbomTrust === 'verified' ? 'good' : 'plain'}>{sbomTrust}</Badge>
}

const COLUMNS: readonly Column<Report>[] = [
  { title: 'Source', cell: ({ source }) => source, text: ({ source }) => source },
  {
    title: 'Scanner',
    cell: ({ scannerName, scannerVersion }) => [scannerName, scannerVersion].filter(Boolean).join(' ') || '–',
    text: ({ scannerName, scannerVersion }) => [scannerName, scannerVersion].filter(Boolean).join(' '),
  },
  { title: 'Scanned', cell: ({ scannedAt }) => <Ago at={scannedAt} />, text: ({ scannedAt }) => scannedAt },
  {
    title: 'Database of',
    cell: ({ dbUpdatedAt }) => <Time at={dbUpdatedAt} />,
    text: ({ dbUpdatedAt }) => dbUpdatedAt,
  },
  { title: 'Found by', cell: ({ join }) => <JoinBadge join={join} />, text: ({ join }) => join },
  {
    title: 'About the digest',
    cell: ({ reportDigest, digestKind }) => (
      <>
        <Digest digest={reportDigest} isLink={false} /> <span class="kind">{digestKind}</span>
      </>
    ),
    text: ({ reportDigest }) => reportDigest,
  },
  {
    title: 'System',
    cell: ({ osFamily, osName, osEosl }) => (
      <>
        {[osFamily, osName].filter(Boolean).join(' ') || '–'}{' '}
        {osEosl && (
          <Badge tone="warn" title="The distribution no longer gets fixes, as the scanner says.">
            end of life
          </Badge>
        )}
      </>
    ),
    text: ({ osFamily, osName }) => [osFamily, osName].filter(Boolean).join(' '),
  },
  { title: 'Trust of the SBOM', cell: (report) => <Trust report={report} />, text: ({ sbomTrust }) => sbomTrust },
  { title: 'Rows', cell: ({ itemCount }) => itemCount, text: ({ itemCount }) => itemCount, isNumber: true },
]
