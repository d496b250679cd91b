/** The head of every tab: the name, the posture with its dimensions, and links to other pages. */

import { counted } from '../../parts/plural.ts'
import { Badge } from '../../parts/text.tsx'
import { Ago } from '../../parts/time.tsx'
import { href } from '../../place.ts'
import { tabHref } from './links.ts'
import { type Named, wholeName } from './name.ts'
import { cardsOf } from './overview/facts.ts'
import { DIMENSIONS, type Profile, STATUS_TONES } from './words.ts'

export function Title({ namespace, kind, name }: Named) {
  return (
    <div class="dossier-title">
      <p class="faint">
        <bdi>{kind}</bdi> in <a href={href(['workloads'], { namespace })}>{namespace}</a>
      </p>
      <h1>{name}</h1>
      <nav aria-label="About this workload">
        <ul class="inline-links">
          <li>
            <a href={href(['focus', namespace, kind, name])}>Callers and callees</a>
          </li>
          <li>
            <a href={href(['flows'], { workload: wholeName({ namespace, kind, name }) })}>Flows</a>
          </li>
          <li>
            <a href={href(['policy', namespace, kind, name])}>Network policy</a>
          </li>
        </ul>
      </nav>
    </div>
  )
}

export function Posture({ profile }: { profile: Profile }) {
  const { posture, workload, version, snapshotPending } = profile
  return (
    <div class="posture">
      <dl class="dimension-strip">
        <div>
          <dt>Posture</dt>
          <dd>
            <Badge tone={STATUS_TONES[posture.status]}>{posture.status}</Badge>
          </dd>
        </div>
        {cardsOf(profile).map(({ name, title, state, tone, tab, facts, reasons }) => (
          <div key={name}>
            <dt>{title}</dt>
            <dd>
              <a class="plain-link" href={tabHref(workload, tab)} title={[...reasons, ...facts].join('\n')}>
                <Badge tone={tone}>{state}</Badge>
              </a>
            </dd>
          </div>
        ))}
      </dl>
      <p class="faint">
        {workload.pods.live === 0 ? 'No live pod' : counted(workload.pods.live, 'live pod')}
        {' · '}
        {version === null ? (
          'no version of the profile stored'
        ) : (
          <>
            <a href={tabHref(workload, 'changes')}>revision {version.revision}</a> of <Ago at={version.createdAt} />
          </>
        )}
        {snapshotPending && ', the state is newer'}
        {posture.unknownDimensions.length > 0 &&
          ` · not known: ${posture.unknownDimensions.map((one) => DIMENSIONS[one].toLowerCase()).join(', ')}`}
      </p>
    </div>
  )
}
