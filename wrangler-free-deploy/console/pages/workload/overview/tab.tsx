/** A summary of all dimensions; those that need attention come first. */
import { Badge, SeverityBadge } from '../../../parts/text.tsx'
import type { TabProps } from '../index.tsx'
import { tabHref } from '../links.ts'
import { DIMENSIONS, type Profile } from '../words.ts'
import { Containers } from './containers.tsx'
import { Controls } from './controls.tsx'
import { type Card, cardsOf, tabOfFinding } from './facts.ts'
import { PodSecurity } from './pod-security.tsx'

export default function Overview({ workload, profile }: TabProps) {
  return (
    <>
      <Attention profile={profile} />
      <section class="section">
        <h2>What is known</h2>
        <div class="cards">
          {cardsOf(profile).map((card) => (
            <DimensionCard key={card.name} card={card} href={tabHref(workload, card.tab)} />
          ))}
        </div>
      </section>
      <Containers profile={profile} />
      <PodSecurity dimension={profile.dimensions.podSecurity} />
      <Controls profile={profile} />
    </>
  )
}

function Attention({ profile: { attention, findings, posture, workload } }: { profile: Profile }) {
  const others = findings.length - attention.length
  const unknown = posture.unknownDimensions.map((one) => DIMENSIONS[one].toLowerCase())
  return (
    <section class="section">
      <h2>What needs a look</h2>
      {attention.length === 0 ? (
        <p>
          Nothing of medium severity or worse is found in what is known.
          {unknown.length > 0 && ` Not known: ${unknown.join(', ')}.`}
        </p>
      ) : (
        <ul class="finding-list">
          {attention.map((finding) => (
            <FindingItem key={finding.id} finding={finding} workload={workload} />
          ))}
        </ul>
      )}
      {others > 0 && (
        <details>
          <summary>{others} more</summary>
          <ul class="finding-list">
            {findings
              .filter(({ id }) => !attention.some((one) => one.id === id))
              .map((finding) => (
                <FindingItem key={finding.id} finding={finding} workload={workload} />
              ))}
          </ul>
        </details>
      )}
    </section>
  )
}

function FindingItem({ finding, workload }: { finding: Profile['findings'][number]; workload: Profile['workload'] }) {
  const { severity, title, detail, dimension, container } = finding
  const tab = tabOfFinding(finding)
  return (
    <li>
      <SeverityBadge severity={severity} />
      <div>
        <p>
          {tab === '' ? title : <a href={tabHref(workload, tab)}>{title}</a>}{' '}
          <span class="kind">
            {DIMENSIONS[dimension].toLowerCase()}
            {container !== null && (
              <>
                , <bdi>{container}</bdi>
              </>
            )}
          </span>
        </p>
        {detail !== '' && <p class="faint wrap">{detail}</p>}
      </div>
    </li>
  )
}

function DimensionCard({
  card: { title, state, tone, facts, reasons, limit, tab },
  href,
}: {
  card: Card
  href: string
}) {
  return (
    <div class="card">
      <h3 class="card-title">
        {tab === '' ? title : <a href={href}>{title}</a>} <Badge tone={tone}>{state}</Badge>
      </h3>
      {facts.length > 0 && (
        <ul class="facts">
          {facts.map((fact) => (
            <li key={fact}>{fact}</li>
          ))}
        </ul>
      )}
      {reasons.map((reason) => (
        <p key={reason}>{reason}.</p>
      ))}
      {limit !== null && <p class="faint">In part: {limit}.</p>}
    </div>
  )
}
