/** Compares the time window with the period of stored flows. */
import { momentMs } from '../../parts/moment.ts'

/** Tolerance: a small cluster may have no flow for a while. */
const QUIET_MS = 60_000

/**
 * Whether a window begins clearly before the oldest stored flow. `since` is a time or relative, as the API reads it.
 */
export const isOlderThanKept = (since: string, keptSinceMs: number, nowMs: number): boolean =>
  keptSinceMs - momentMs(since, nowMs) > QUIET_MS
