/** Description of a vulnerability, its urgency here, and the use of its packages. */

import { type Answer, addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { factorText, USES } from '../../parts/finding-words.ts'
import { Outside } from '../../parts/outside.tsx'
import { counted, numberText } from '../../parts/plural.ts'
import { reasonText } from '../../parts/reason-words.ts'
import { Failure, Loading } from '../../parts/states.tsx'
import { Epss, InUse, Kev, TierBadge } from '../../parts/supply-chain.tsx'
import { Count, SeverityBadge } from '../../parts/text.tsx'
import { Time } from '../../parts/time.tsx'
import { href } from '../../place.ts'

type Vulnerability = Answer<'/vulnerabilities'>['items'][number]
type Finding = Answer<'/images/{digest}/vulnerabilities'>['items'][number]

const MAX_FINDINGS = 20

interface AboutProps {
  readonly id: string
  /** An image with a finding that describes it; null if there is none, undefined until that is known. */
  readonly digest: string | null | undefined
}

const questionOf = (id: string) => ({ query: { vuln_id: id, limit: 1 } })

/** Its row in the list of the cluster. */
export const useSummary = (id: string) => useRead('/vulnerabilities', questionOf(id))

export function About({ id, digest }: AboutProps) {
  const summary = useSummary(id)
  const findings = useRead(
    '/images/{digest}/vulnerabilities',
    { path: { digest: digest ?? '' }, query: { vuln_id: id, limit: MAX_FINDINGS } },
    { enabled: typeof digest === 'string' },
  )
  const row = summary.data?.items[0]
  const found = findings.data?.items ?? []
  if (digest === null || (summary.data !== undefined && row === undefined && digest === undefined)) return null
  if (summary.data === undefined && findings.data === undefined)
    return summary.error === null ? <Loading /> : <Failure error={summary.error} retry={summary.refetch} />
  return (
    <div class="section">
      <div class="cards wide">
        <div class="card">
          <h2>What it is</h2>
          <What row={row} finding={found.find(({ title }) => title !== null) ?? found[0]} />
        </div>
        <div class="card">
          <h2>How urgent it is here</h2>
          <Urgency row={row} findings={found} digest={digest ?? null} />
          <div>
            <CopyAs ctb={['vulns', '--vuln-id', id]} url={addressOf('/vulnerabilities', questionOf(id))} />
          </div>
        </div>
      </div>
    </div>
  )
}

function What({ row, finding }: { row: Vulnerability | undefined; finding: Finding | undefined }) {
  const aliases = row?.aliases ?? finding?.aliases ?? []
  return (
    <>
      {finding?.title && <p class="wrap">{finding.title}</p>}
      <dl class="pairs">
        <dt>Severity</dt>
        <dd>
          <SeverityBadge severity={row?.severity ?? finding?.severity} />{' '}
          {row?.maxScore != null && <span class="number">score {row.maxScore}</span>}
        </dd>
        <dt>Known to be exploited</dt>
        <dd>
          <Kev kev={row?.kev ?? finding?.kev ?? null} />{' '}
          {finding?.kevDateAdded && <span class="faint">listed {finding.kevDateAdded.slice(0, 10)}</span>}
        </dd>
        <dt title="The probability that it is exploited within 30 days">EPSS</dt>
        <dd>
          <Epss value={row?.maxEpss ?? finding?.epss ?? null} />
        </dd>
        <dt>Also known as</dt>
        <dd class="wrap">{aliases.length === 0 ? <span class="faint">no other id</span> : aliases.join(', ')}</dd>
        {row && (
          <>
            <dt>Packages</dt>
            <dd>
              {row.packages.map((name, index) => (
                <span key={name}>
                  {index > 0 && ', '}
                  <a href={href(['packages'], { name })}>{name}</a>
                </span>
              ))}
              {row.packageCount > row.packages.length && ` and ${row.packageCount - row.packages.length} more`}
            </dd>
            <dt>Found by</dt>
            <dd>{row.sources.join(', ')}</dd>
          </>
        )}
        {finding && (
          <>
            <dt>Published</dt>
            <dd>
              <Time at={finding.publishedAt} />
            </dd>
          </>
        )}
        {finding?.primaryUrl && (
          <>
            <dt>More about it</dt>
            <dd>
              <Outside url={finding.primaryUrl} />
            </dd>
          </>
        )}
      </dl>
    </>
  )
}

interface UrgencyProps {
  readonly row: Vulnerability | undefined
  readonly findings: readonly Finding[]
  readonly digest: string | null
}

function Urgency({ row, findings, digest }: UrgencyProps) {
  if (row === undefined)
    return (
      <p class="faint">
        The next pass of the job counts it: until then its tier and its use in the cluster are not known.
      </p>
    )
  const factors = [...new Set(findings.flatMap(({ tierFactors }) => tierFactors))].map(factorText)
  const reasons = [...new Set(findings.flatMap(({ inUseDetail }) => inUseDetail.reason ?? []))].map(reasonText)
  return (
    <>
      <dl class="pairs">
        <dt>Tier</dt>
        <dd>
          <TierBadge tier={row.tier} />{' '}
          {row.tier !== null && <span class="faint">the most urgent of all containers</span>}
        </dd>
        <dt>Package in use</dt>
        <dd>
          <InUse state={row.inUseState} /> <span class="faint">{USES[row.inUseState].meaning}</span>
        </dd>
        <dt>Workloads by use</dt>
        <dd>
          <Count value={row.executedWorkloads} /> executed, <Count value={row.loadedWorkloads} /> loaded,{' '}
          <Count value={row.unknownWorkloads} /> not known, <Count value={row.notObservedWorkloads} /> not seen in use
        </dd>
        <dt>Seen exposed</dt>
        <dd>
          {numberText(row.exposedWorkloads)} of {counted(row.workloads, 'workload')}
        </dd>
        <dt>Decided</dt>
        <dd>
          {numberText(row.decidedWorkloads)} of {counted(row.workloads, 'workload')}
        </dd>
        <dt>Fix</dt>
        <dd>{row.fixable ? 'a fixed version is known for some package' : 'no fixed version is known'}</dd>
      </dl>
      {digest !== null && findings.length > 0 && (
        <p class="faint">
          In <a href={href(['image', digest], { tab: 'vulnerabilities', vuln_id: row.id })}>one of its images</a>:{' '}
          {[...factors, ...reasons].join('; ')}.
        </p>
      )}
    </>
  )
}
