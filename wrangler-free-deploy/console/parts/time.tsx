/** Times: short local time on the page, full UTC on hover. */
import { useNow } from '../hooks.ts'
import { durationText, localText, toMs, utcText } from './moment.ts'

export { durationText, localText, momentMs, toMs, utcText } from './moment.ts'

/** Ages are updated at this interval. */
const AGE_STEP_MS = 15_000

/** A time, or a dash if there is none. */
export function Time({ at }: { at: string | null | undefined }) {
  if (at === null || at === undefined) return <span class="faint">–</span>
  return (
    <time dateTime={at} title={utcText(at)}>
      {localText(at)}
    </time>
  )
}

/** `12 min ago`, updated while the page is open. */
export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow(AGE_STEP_MS)
  if (at === null || at === undefined) return <span class="faint">never</span>
  const ms = toMs(at)
  if (Number.isNaN(ms)) return <span>{at}</span>
  return (
    <time dateTime={at} title={utcText(at)}>
      {now - ms < 0 ? 'now' : `${durationText(Math.max(now - ms, 0))} ago`}
    </time>
  )
}
