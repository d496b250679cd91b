/** Shows whether flows arrive live, and the reason if they do not. */

import { ApiError } from '../../api/client.ts'
import { useNow } from '../../hooks.ts'
import { Failure } from '../../parts/states.tsx'
import { durationText } from '../../parts/time.tsx'
import type { FollowState } from './follow.ts'
import type { Live } from './use-follow.ts'

const GONE = 410
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' })
const count = new Intl.NumberFormat()
const STEP_MS = 1_000

export function LiveBar({ live: { follow, state } }: { live: Live }) {
  if (state.phase === 'gone')
    return (
      <div class="section">
        <Failure error={new ApiError(GONE, state.message)} />
        <p>
          <button type="button" onClick={() => follow.restart()}>
            Start again from now
          </button>
        </p>
      </div>
    )
  if (state.phase === 'failed') return <Failure error={new Error(state.message)} retry={() => follow.restart()} />
  return (
    <div class="live-bar">
      <span class={`live-mark ${state.phase}`} aria-hidden="true" />
      <span role="status">
        <PhaseText state={state} />
      </span>
      <button type="button" onClick={() => (state.isPaused ? follow.play() : follow.pause())}>
        {state.isPaused ? 'Go on' : 'Pause'}
      </button>
      {state.isPaused && (
        <button type="button" class="main" disabled={state.waiting === 0} onClick={() => follow.play()}>
          {count.format(state.waiting)} new
        </button>
      )}
      {state.dropped > 0 && (
        <span class="faint">
          The newest {count.format(state.rows.length)} flows are kept here; {count.format(state.dropped)} that came live
          before, and the list below them, were removed from the page. They are stored: switch Live off to read them.
        </span>
      )}
    </div>
  )
}

function PhaseText({ state: { phase, asOfMs, isPaused, retryAtMs, message } }: { state: FollowState }) {
  const now = useNow(STEP_MS)
  const retry = retryAtMs === null ? '' : `, tried again in ${durationText(Math.max(retryAtMs - now, STEP_MS))}`
  const asOf = asOfMs === 0 ? '' : `, as of ${clock.format(asOfMs)}`
  switch (phase) {
    case 'live':
      return <>{isPaused ? `Paused${asOf}` : `Live${asOf}`}</>
    case 'connecting':
      return <>Connecting{asOf}</>
    case 'hidden':
      return <>Waits until this tab is seen{asOf}</>
    case 'busy':
      return (
        <span title={message}>
          Not live: the broker has no room for another follower. The list is read anew instead{retry}
        </span>
      )
    default:
      return (
        <span title={message}>
          Not live: the connection to the broker is lost{asOf}
          {retry}. Nothing will be missing then.
        </span>
      )
  }
}
