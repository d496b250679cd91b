/** Observed syscalls, the applied profile, denials, and a profile to export. */
import { type Answer, addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { Badge } from '../../../parts/text.tsx'
import { Time } from '../../../parts/time.tsx'
import { Seccomp as Profile } from '../../policy/exports/seccomp.tsx'
import '../../policy/policy.css'
import { counted } from '../../../parts/plural.ts'
import { Because } from '../because.tsx'
import type { TabProps } from '../index.tsx'
import type { Named } from '../name.ts'
import { Denials } from './denials.tsx'
import { Observed } from './observed.tsx'

const PATH = '/seccomp/profiles/{namespace}/{kind}/{name}'
export type Seccomp = Answer<typeof PATH>

export default function SeccompTab({ workload, profile }: TabProps) {
  const { syscalls } = profile.dimensions
  return (
    <>
      {syscalls.observed === null ? (
        <Empty title="No syscall was observed">
          {syscalls.reasons.map(({ message }) => message).join('. ') || 'No agent recorded a syscall of its pods'}. So
          there is no profile to compare or to export.
        </Empty>
      ) : (
        <Known workload={workload} />
      )}
      <Denials workload={workload} />
    </>
  )
}

function Known({ workload }: { workload: Named }) {
  const { namespace, kind, name } = workload
  const params = { path: { namespace, kind, name }, query: { detail: true } }
  const reading = useRead(PATH, params)
  return (
    <Shown reading={reading}>
      {(seccomp) => (
        <>
          <Summary seccomp={seccomp} />
          <Applied seccomp={seccomp} />
          <Observed seccomp={seccomp} commands={{ url: addressOf(PATH, params) }} />
          <Profile target={{ namespace, workload: params.path }} workload={params.path} />
        </>
      )}
    </Shown>
  )
}

function Summary({
  seccomp: { capture, captureComplete, denials, denialsReason, denialsReasonDetail, ...rest },
}: {
  seccomp: Seccomp
}) {
  const incomplete = capture.pods.filter(({ level }) => level !== 'full')
  return (
    <section class="section">
      <h2>Observed</h2>
      <dl class="pairs">
        <dt>Syscalls</dt>
        <dd>
          {rest.syscallCount}, of {rest.architectures.join(', ') || 'an architecture that is not known'}; the set grew
          last <Time at={rest.updatedAt} />
          {rest.detail?.resetAt && (
            <>
              ; it began anew <Time at={rest.detail.resetAt} />
            </>
          )}
        </dd>
        <dt>Capture</dt>
        <dd>
          {captureComplete ? <Badge tone="good">complete</Badge> : <Badge tone="warn">not complete</Badge>} level{' '}
          {capture.level}
          {!captureComplete &&
            `: ${counted(capture.incomplete, 'pod')} did not record all, so a syscall may be missing`}
          {incomplete.length > 0 && (
            <span class="faint">
              {' '}
              ({incomplete.map(({ name, level }) => `${name} ${level}`).join(', ')}
              {capture.more > 0 && `, ${capture.more} more pods not listed`})
            </span>
          )}
        </dd>
        <dt>Denied or logged by the kernel</dt>
        <dd>
          {denials === null ? (
            <>
              <Badge>not known</Badge>{' '}
              {denialsReason !== null && <Because reason={denialsReason} detail={denialsReasonDetail} />}
            </>
          ) : denials.total === 0 ? (
            <>
              <Badge tone="good">0</Badge> somebody watched, and nothing was denied
            </>
          ) : (
            <>
              <Badge tone="bad">{denials.total}</Badge> <bdi>{denials.syscalls.join(', ')}</bdi>; the last{' '}
              <Time at={denials.lastSeen} />
            </>
          )}
        </dd>
      </dl>
    </section>
  )
}

function Applied({ seccomp: { cr, crCount, recommendedSnippet } }: { seccomp: Seccomp }) {
  if (cr === null)
    return (
      <section class="section">
        <h2>Applied</h2>
        <Empty title="No SeccompProfile refers to this workload">
          None was mirrored to the broker. Syscalls are observed, and nothing can have drifted.
        </Empty>
      </section>
    )
  const { distribution, statusDistribution, drift } = cr
  return (
    <section class="section">
      <h2>Applied</h2>
      {crCount > 1 && <p class="note">{crCount} resources refer to it. This is the one that was updated last.</p>}
      <dl class="pairs">
        <dt>Resource</dt>
        <dd>
          {cr.name}, {cr.syscallCount} syscalls, else {cr.defaultAction}; updated <Time at={cr.updatedAt} />
        </dd>
        <dt>Drift</dt>
        <dd>
          <Badge tone={drift.inSync ? 'good' : 'warn'}>{drift.inSync ? 'in sync' : 'drifted'}</Badge>{' '}
          {drift.inSync ? 'it allows all that was observed' : `observed and not allowed: ${drift.missing.join(', ')}`}
          {drift.extra.length > 0 && (
            <details>
              <summary>{counted(drift.extra.length, 'syscall')} allowed and never observed</summary>
              <p class="wrap">{drift.extra.join(', ')}</p>
            </details>
          )}
        </dd>
        <dt>On nodes</dt>
        <dd>
          <Badge tone={distribution.state === 'Ready' ? 'good' : 'warn'}>{distribution.state}</Badge>{' '}
          {distribution.ready} of {counted(distribution.total, 'node')} that reported lately have this version
          {distribution.present > distribution.ready &&
            `, ${distribution.present - distribution.ready} more have another one`}
          {statusDistribution !== null && (
            <span class="faint">
              {' '}
              (the resource itself says {statusDistribution.ready} of {statusDistribution.total})
            </span>
          )}
        </dd>
        <dt>In a manifest</dt>
        <dd>
          <code class="wrap">
            seccompProfile: type {recommendedSnippet.seccompProfile.type}, localhostProfile{' '}
            {recommendedSnippet.seccompProfile.localhostProfile}
          </code>
        </dd>
      </dl>
    </section>
  )
}
