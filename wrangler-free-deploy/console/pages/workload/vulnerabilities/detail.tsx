/** All known data of one finding. */
import type { ComponentChildren } from 'preact'
import { factorText, percentText } from '../../../parts/finding-words.ts'
import { Outside } from '../../../parts/outside.tsx'
import { InUse, TierBadge } from '../../../parts/supply-chain.tsx'
import { SeverityBadge } from '../../../parts/text.tsx'
import { Time } from '../../../parts/time.tsx'
import { href } from '../../../place.ts'
import { Sheet } from '../sheet.tsx'
import { decisionText, type Finding, isPartial, scopeText, statusText, useReason } from './words.ts'

const SHOWN_PATHS = 20

export function FindingSheet({ finding, onClose }: { finding: Finding; onClose: () => void }) {
  const { id, aliases, title, severity, score, tier, tierFactors, inUseState, inUseDetail, filePaths } = finding
  return (
    <Sheet title={id} onClose={onClose}>
      {title !== null && <p class="wrap">{title}</p>}
      <p>
        <a href={href(['vulnerability', id])}>Where it runs, and what reaches it</a>
        {aliases.length > 0 && <span class="faint"> · also {aliases.join(', ')}</span>}
      </p>
      <dl class="pairs">
        <Pair title="Tier">
          <TierBadge tier={tier} /> {tierFactors.map(factorText).join('; ')}
        </Pair>
        <Pair title="In use">
          <InUse state={inUseState} /> {useReason(inUseDetail)}
          {inUseDetail.observedSince !== null && (
            <>
              ; watched since <Time at={inUseDetail.observedSince} />
            </>
          )}
        </Pair>
        <Pair title="Severity">
          <SeverityBadge severity={severity} /> {score !== null && `score ${score}`}
        </Pair>
        <Pair title="Package">
          <code class="wrap">{finding.package.purl ?? `${finding.package.name} ${finding.installedVersion}`}</code>
        </Pair>
        <Pair title="Fixed in">
          {finding.fixedVersions.length === 0 ? 'no version is known' : finding.fixedVersions.join(', ')}
          <span class="faint"> (status of the scanner: {statusText(finding.status)})</span>
        </Pair>
        <Exploited finding={finding} />
        <DecisionOf finding={finding} />
        <Pair title="Files">
          {filePaths.length === 0 ? (
            'no scanner names files of the package'
          ) : (
            <ul class="facts">
              {filePaths.slice(0, SHOWN_PATHS).map((path) => (
                <li key={path}>
                  <code class="wrap">{path}</code>
                </li>
              ))}
              {filePaths.length > SHOWN_PATHS && <li class="faint">{filePaths.length - SHOWN_PATHS} more</li>}
              {finding.omitted > 0 && <li class="faint">{finding.omitted} left out by the broker</li>}
            </ul>
          )}
        </Pair>
        <Pair title="Published">
          <Time at={finding.publishedAt} />
        </Pair>
        <Pair title="Said by">{finding.sources.join(', ')}</Pair>
        {finding.primaryUrl !== null && (
          <Pair title="More">
            <Outside url={finding.primaryUrl} />
          </Pair>
        )}
      </dl>
    </Sheet>
  )
}

function Pair({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </>
  )
}

function Exploited({ finding: { kev, kevDateAdded, epss, epssPercentile } }: { finding: Finding }) {
  return (
    <>
      <Pair title="Exploited (KEV)">
        {kev === null ? (
          'no source says'
        ) : kev ? (
          <>
            known to be exploited
            {kevDateAdded !== null && <>, listed {kevDateAdded.slice(0, 10)}</>}
          </>
        ) : (
          'not in the list of exploited vulnerabilities'
        )}
      </Pair>
      <Pair title="EPSS">
        {epss === null
          ? 'no source says'
          : `${percentText(epss)} chance of being exploited in the next 30 days${
              epssPercentile === null ? '' : `, more than ${percentText(epssPercentile)} of all`
            }`}
      </Pair>
    </>
  )
}

function DecisionOf({ finding }: { finding: Finding }) {
  const { decision } = finding
  if (decision === null) return <Pair title="Decision">none</Pair>
  return (
    <Pair title="Decision">
      <p class="wrap">
        {decisionText(decision)}, {scopeText(decision.scope)}
        {decision.until !== null && `, until ${decision.until}`}
        {isPartial(finding) && '; it does not settle the finding in every workload that has the image'}
      </p>
      <p class="faint wrap">
        {decision.by}, <Time at={decision.decidedAt} />: {decision.why}
        {decision.origin !== null && ` (from the document ${decision.origin.document})`}
      </p>
    </Pair>
  )
}
