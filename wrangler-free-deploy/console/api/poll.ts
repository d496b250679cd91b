/** When a read is asked for again: at once after a failure that may pass, and from time to time. */
import { ApiError } from './error.ts'

const LONGEST_POLL_MS = 300_000
/** A page that has nothing to show because the broker is away or busy asks again after this time, then ever later. */
const FIRST_AGAIN_MS = 10_000
const MAX_RETRIES = 2
const RETRY_MS = 1_000
/** Whoever has to wait longer for the next try is told so. */
const LONGEST_RETRY_MS = 5_000
/** Pages of a list that are polled. */
const POLLED_PAGES = 2

/** No answer, no answer behind the edge proxy, or no room. */
const PASSING = [0, 502, 503, 504]
const isPassing = (error: unknown) => error instanceof ApiError && PASSING.includes(error.status)
const retryAfterOf = (error: unknown) => (error instanceof ApiError ? error.retryAfterMs : null)

export const isRetried = (failures: number, error: unknown): boolean =>
  failures < MAX_RETRIES && isPassing(error) && (retryAfterOf(error) ?? 0) <= LONGEST_RETRY_MS

export const retryDelayMs = (failures: number, error: unknown): number =>
  retryAfterOf(error) ?? RETRY_MS * 2 ** failures

interface Polled {
  readonly status: string
  readonly error: unknown
  /** Since the read was first wanted; answers in between do not reset it. */
  readonly errorUpdateCount: number
  readonly errorUpdatedAt: number
  readonly data: unknown
  readonly dataUpdatedAt: number
}

/** After a failure the next question waits longer and longer. */
export const pollOf =
  (pollMs: number) =>
  ({ state }: { readonly state: Polled }): number | false => {
    const { status, error, data } = state
    const isAwaited = status === 'error' && data === undefined && isPassing(error)
    if ((pollMs === 0 && !isAwaited) || isDeep(data)) return false
    if (status !== 'error') return pollMs
    const waitMs = isAwaited ? FIRST_AGAIN_MS * backOffOf(state) : backOffMsOf(state, pollMs)
    return Math.min(Math.max(waitMs, retryAfterOf(error) ?? 0), LONGEST_POLL_MS)
  }

const backOffOf = ({ errorUpdateCount }: Polled) => 2 ** Math.min(Math.max(errorUpdateCount - 1, 0), 10)

/** With an answer to show, as long as none came since: that doubles with each failure, and ends with an answer. */
function backOffMsOf(state: Polled, pollMs: number): number {
  const { data, errorUpdatedAt, dataUpdatedAt } = state
  return data === undefined ? pollMs * backOffOf(state) : Math.max(pollMs, errorUpdatedAt - dataUpdatedAt)
}

/** Somebody who has read this many pages of a list is not interrupted, and the broker not asked for all of them. */
export function isDeep(data: unknown): boolean {
  const { pages = [] } = (data ?? {}) as { pages?: readonly unknown[] }
  return pages.length > POLLED_PAGES
}
