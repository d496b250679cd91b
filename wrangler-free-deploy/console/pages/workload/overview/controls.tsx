/** The controls that confine the workload now, and the ones that could be applied. */
import type { ComponentChildren } from 'preact'
import { Badge, type Tone } from '../../../parts/text.tsx'
import type { Profile } from '../words.ts'

const CONTROLS: Readonly<Record<string, string>> = {
  networkPolicy: 'Network policy',
  seccompProfile: 'Seccomp profile',
  imageAdmission: 'Admission of images',
}
const READINESS: Readonly<Record<string, string>> = {
  trafficObserved24h: 'A day of flows',
  syscallCaptureComplete: 'All syscalls recorded',
  noWouldDeny24h: 'No denial by audited policies in 24 hours',
  imageSigned: 'All images signed',
  podSecurityRestricted: 'Pod Security level restricted',
}

export function Controls({ profile: { controls, readiness } }: { profile: Profile }) {
  return (
    <section class="section">
      <h2>Controls and readiness</h2>
      <dl class="pairs">
        {controls.map(({ control, state, detail, inSync }) => (
          <Pair
            key={control}
            title={CONTROLS[control] ?? control}
            tone={toneOfControl(state)}
            word={state ?? 'unknown'}
          >
            {detail}
            {inSync === false && '; what is applied is not in sync'}
          </Pair>
        ))}
        {readiness.map(({ id, ok, message }) => (
          <Pair
            key={id}
            title={READINESS[id] ?? id}
            tone={ok === null ? 'plain' : ok ? 'good' : 'warn'}
            word={ok === null ? 'unknown' : ok ? 'yes' : 'no'}
          >
            {message}
          </Pair>
        ))}
      </dl>
    </section>
  )
}

const toneOfControl = (state: Profile['controls'][number]['state']): Tone =>
  state === 'enforcing' ? 'good' : state === 'none' ? 'warn' : state === 'audit' ? 'info' : 'plain'

function Pair({
  title,
  tone,
  word,
  children,
}: {
  title: string
  tone: Tone
  word: string
  children: ComponentChildren
}) {
  return (
    <>
      <dt>{title}</dt>
      <dd>
        <Badge tone={tone}>{word}</Badge> {children}
      </dd>
    </>
  )
}
