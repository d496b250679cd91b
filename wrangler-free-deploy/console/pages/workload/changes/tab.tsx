/** Changes between two dates, and the versions of the profile. */
import { useState } from 'preact/hooks'
import { addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Shown } from '../../../parts/states.tsx'
import { Time, utcText } from '../../../parts/time.tsx'
import { go, hrefWith, usePlace } from '../../../place.ts'
import type { TabProps } from '../index.tsx'
import { wholeName } from '../name.ts'
import { DIMENSIONS, driftText, notEvaluatedText, type Profile } from '../words.ts'
import { inputText, typedTime } from './dates.ts'
import { PartSection } from './part.tsx'
import { partsOf } from './rows.ts'
import { Versions } from './versions.tsx'

const PATH = '/workloads/{namespace}/{kind}/{name}/diff'
/** A comparison reads months of records, so it is not polled. */
const NO_POLL = 0

const PRESETS = [
  { from: '24h', text: '1 day' },
  { from: '7d', text: '7 days' },
  { from: '30d', text: '30 days' },
] as const

export default function Changes({ workload, profile }: TabProps) {
  const { namespace, kind, name } = workload
  const { query } = usePlace()
  const from = query.get('from') || '7d'
  const to = query.get('to') ?? ''
  const params = { path: { namespace, kind, name }, query: { from, ...(to !== '' && { to }) } }
  const reading = useRead(PATH, params, { pollMs: NO_POLL })
  const ctb = ['diff', wholeName(workload), '--from', from, ...(to === '' ? [] : ['--to', to])]
  return (
    <>
      <section class="section">
        <h2>Between two dates</h2>
        <Dates from={from} to={to} />
        <Shown reading={reading}>
          {(diff) => (
            <>
              <div class="table-tools">
                <span>
                  From <Time at={diff.from} /> to <Time at={diff.to} />
                  {diff.images !== null && diff.images.fromSeenAt < diff.from && (
                    <span class="faint">
                      {' '}
                      (its images then are those it was last seen with before, <Time at={diff.images.fromSeenAt} />)
                    </span>
                  )}
                </span>
                <span class="grow" />
                <CopyAs ctb={ctb} url={addressOf(PATH, params)} />
              </div>
              {partsOf(diff).map((part) => (
                <PartSection key={part.name} part={part} />
              ))}
            </>
          )}
        </Shown>
      </section>
      <Drift profile={profile} />
      <Versions workload={workload} />
    </>
  )
}

function Dates({ from, to }: { from: string; to: string }) {
  const [older, setOlder] = useState(inputText(from))
  const [newer, setNewer] = useState(inputText(to))
  return (
    <form
      class="form-row"
      onSubmit={(event) => {
        event.preventDefault()
        go(hrefWith({ from: typedTime(older) ?? from, to: typedTime(newer) ?? '' }))
      }}
    >
      <span class="preset-row">
        {PRESETS.map((preset) => (
          <a
            key={preset.from}
            href={hrefWith({ from: preset.from, to: null })}
            aria-current={from === preset.from && to === '' ? 'true' : undefined}
          >
            {preset.text}
          </a>
        ))}
      </span>
      <label class="field">
        From
        <input type="datetime-local" value={older} onInput={({ currentTarget }) => setOlder(currentTarget.value)} />
      </label>
      <label class="field">
        To (blank is now)
        <input type="datetime-local" value={newer} onInput={({ currentTarget }) => setNewer(currentTarget.value)} />
      </label>
      <button type="submit">Compare</button>
    </form>
  )
}

function Drift({ profile: { drift } }: { profile: Profile }) {
  const { items, notEvaluated, baselines } = drift
  const { export: exported, securityContext } = baselines
  return (
    <section class="section">
      <h2>{DIMENSIONS.drift} from a baseline</h2>
      <p class="faint">
        {exported === null
          ? 'No export of its profile was recorded.'
          : `The last recorded export is of ${utcText(exported.exportedAt)} (${exported.artifacts.join(', ')}).`}{' '}
        {securityContext !== null &&
          `Security contexts are compared with ${
            securityContext.source === 'export' ? 'that export' : 'an earlier version'
          }, of ${utcText(securityContext.since)}.`}
      </p>
      <ul class="facts">
        {items.map(({ type, findingId, container, severity }) => (
          <li key={findingId}>
            {driftText(type)} ({container ?? 'the pod'}, {severity})
          </li>
        ))}
        {notEvaluated.map(({ type, container, reason }) => (
          <li key={`${type} ${container}`} class="faint">
            Not evaluated: {driftText(type).toLowerCase()}
            {container !== null && ` (${container})`}, because {notEvaluatedText(type, reason)}
          </li>
        ))}
        {items.length === 0 && notEvaluated.length === 0 && <li>All was evaluated, and nothing drifted.</li>}
      </ul>
    </section>
  )
}
