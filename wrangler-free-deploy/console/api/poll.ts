/** Decides when a read is repeated: soon after a transient failure, and periodically. */
import { ApiError } from './error.ts'

const LONGEST_POLL_MS = 300_000
/**
 * First interval at which a page without data repeats its read while the broker is away or busy. It doubles each time.
 */
const FIRST_AGAIN_MS = 10_000
const MAX_RETRIES = 2
const RETRY_MS = 1_000
/** If the broker asks for a longer wait, the failure is shown instead of being retried silently. */
const LONGEST_RETRY_MS = 5_000
/** A list is polled only while at most this many of its pages are loaded. */
const POLLED_PAGES = 2

/** Transient failures: no answer, the edge proxy got no answer, or the broker is out of capacity. */
const TRANSIENT = [0, 502, 503, 504]
const isTransient = (error: unknown) => error instanceof ApiError && TRANSIENT.includes(error.status)
const retryAfterOf = (error: unknown) => (error instanceof ApiError ? error.retryAfterMs : null)

export const isRetried = (failures: number, error: unknown): boolean =>
  failures < MAX_RETRIES && isTransient(error) && (retryAfterOf(error) ?? 0) <= LONGEST_RETRY_MS

export const retryDelayMs = (failures: number, error: unknown): number =>
  retryAfterOf(error) ?? RETRY_MS * 2 ** failures

interface Polled {
  readonly status: string
  readonly error: unknown
  /** Failures since the query was created; a success does not reset it. */
  readonly errorUpdateCount: number
  readonly errorUpdatedAt: number
  readonly data: unknown
  readonly dataUpdatedAt: number
}

/** The polling interval; it grows after each failure. */
export const pollOf =
  (pollMs: number) =>
  ({ state }: { readonly state: Polled }): number | false => {
    const { status, error, data } = state
    const isAwaited = status === 'error' && data === undefined && isTransient(error)
    if ((pollMs === 0 && !isAwaited) || isDeep(data)) return false
    if (status !== 'error') return pollMs
    const waitMs = isAwaited ? FIRST_AGAIN_MS * backOffOf(state) : backOffMsOf(state, pollMs)
    return Math.min(Math.max(waitMs, retryAfterOf(error) ?? 0), LONGEST_POLL_MS)
  }

const backOffOf = ({ errorUpdateCount }: Polled) => 2 ** Math.min(Math.max(errorUpdateCount - 1, 0), 10)

/**
 * With older data to show, the interval is the age of that data at the failure: it doubles with each failure and starts
 * again after an answer.
 */
function backOffMsOf(state: Polled, pollMs: number): number {
  const { data, errorUpdatedAt, dataUpdatedAt } = state
  return data === undefined ? pollMs * backOffOf(state) : Math.max(pollMs, errorUpdatedAt - dataUpdatedAt)
}

/** Polling would re-read all loaded pages and move the rows, so it stops for a list that was read this far. */
export function isDeep(data: unknown): boolean {
  const { pages = [] } = (data ?? {}) as { pages?: readonly unknown[] }
  return pages.length > POLLED_PAGES
}
