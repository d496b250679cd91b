/** The third step: the observed flows that the policies would have denied. */

import { ApiError } from '../../../api/client.ts'
import { tokenSource } from '../../../api/session.ts'
import { CopyButton, ctbText, shellWord } from '../../../parts/copy-as.tsx'
import { counted } from '../../../parts/plural.ts'
import { Failure } from '../../../parts/states.tsx'
import { localText } from '../../../parts/time.tsx'
import { go, hrefWith } from '../../../place.ts'
import type { Tried } from './draft.ts'
import { TrialView } from './trial-view.tsx'
import { DAYS, DEFAULT_DAYS, daysText, tryAddress } from './try-policies.ts'

const BAD_REQUEST = 400

export interface TrialStepProps {
  readonly days: string
  readonly tried: Tried | null
  readonly isOutdated: boolean
  readonly isTrying: boolean
  readonly isEmpty: boolean
  readonly fileName: string
  readonly onTry: () => void
  readonly onLine: (line: number) => void
}

export function TrialStep(props: TrialStepProps) {
  const { days, tried, isOutdated, isTrying, isEmpty, fileName, onTry, onLine } = props
  return (
    <section class="section" aria-labelledby="try">
      <div class="step-head">
        <h2 id="try">3. Try</h2>
        <CopyButton
          label="Copy as ctb"
          text={ctbText(['policy', 'try', '-f', fileName, ...(days === 'all' ? [] : ['--since', `${days}d`])])}
        />
        <CopyButton label="Copy as curl" text={curlText(fileName, days)} />
      </div>
      <div class="editor-tools">
        <fieldset class="segments">
          <legend class="unseen">Connections to try it on</legend>
          {DAYS.map((one) => (
            <label key={one}>
              <input
                type="radio"
                name="days"
                value={one}
                checked={one === days}
                onChange={() => go(hrefWith({ days: one === DEFAULT_DAYS ? null : one }), { replace: true })}
              />
              {daysText(one)}
            </label>
          ))}
        </fieldset>
        <button type="button" class="main" disabled={isEmpty} aria-disabled={isTrying} onClick={onTry}>
          {isTrying ? 'Trying…' : 'Try it'}
        </button>
      </div>
      <span class="unseen" role="status">
        {isTrying ? 'Trying' : tried !== null && !isOutdated ? spoken(tried) : ''}
      </span>
      {tried === null && <p class="faint">{isEmpty ? 'There is no text to try.' : NOT_TRIED}</p>}
      {isOutdated && (
        <p class="stale" role="status">
          This answer is out of date: {outdatedText(tried!, days)}. Try it again.
        </p>
      )}
      {tried !== null && (
        <div class={isOutdated ? 'outdated' : undefined}>
          {'error' in tried.outcome ? (
            <Untried error={tried.outcome.error} />
          ) : (
            <TrialView
              trial={tried.outcome.trial}
              text={tried.text}
              days={tried.days}
              {...(!isOutdated && { onLine })}
            />
          )}
        </div>
      )}
    </section>
  )
}

/** Errors in the text are shown above the editor. */
function Untried({ error }: { error: Error }) {
  if (!(error instanceof ApiError) || error.status !== BAD_REQUEST) return <Failure error={error} isByHand />
  return (
    <div class="empty untried">
      <p class="empty-title">Not tried: the text has a fault</p>
      <p class="wrap">{error.message}</p>
    </div>
  )
}

function spoken({ outcome }: Tried): string {
  if ('error' in outcome) return 'It was not tried'
  const { evaluated, allowed, denied, unknown } = outcome.trial
  return `${counted(evaluated, 'edge')} judged: ${allowed} allowed, ${denied} denied, ${unknown} not known`
}

const NOT_TRIED =
  'Not tried yet. The broker judges the connections that were seen by this text alone, and says which of them it ' +
  'would have denied. Nothing is applied or stored.'

const outdatedText = (tried: Tried, days: string): string => {
  const of = tried.days === days ? 'an earlier text' : daysText(tried.days)
  return `it is of ${of}, tried ${localText(new Date(tried.at).toISOString())}`
}

/** The token is a shell variable, as in other commands. */
function curlText(fileName: string, days: string): string {
  const token = tokenSource === 'browser' ? ['-H', '"Authorization: Bearer $CTB_TOKEN"'] : []
  const body = ['-H', shellWord('content-type: application/yaml'), '--data-binary', shellWord(`@${fileName}`)]
  return ['curl', '-s', ...token, ...body, shellWord(tryAddress(days))].join(' ')
}
