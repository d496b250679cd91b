import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'

const TELL_EVERY_MS = 60_000

interface Told {
  at: number
  /** Entries that were not told of since. */
  kept: number
}

/**
 * Entries that were left out of bodies whose other entries were stored (interop-profiling P38). All of them are counted; the log hears of them
 * once a minute and route.
 */
export class Rejections {
  readonly #log: Log
  readonly #metrics: Metrics
  readonly #now: () => number
  readonly #told = new Map<string, Told>()

  /** `now` in milliseconds, of any origin. */
  constructor({ log, metrics, now = () => performance.now() }: { log: Log; metrics: Metrics; now?: () => number }) {
    this.#log = log
    this.#metrics = metrics
    this.#now = now
  }

  /** `route` as `/pod/syscalls`; `why` is what the first of a minute is told with. */
  note(route: string, entries: number, why: string): void {
    if (entries === 0) return
    this.#metrics.rejectedEntries.inc({ route }, entries)
    const now = this.#now()
    const told = this.#told.get(route) ?? { at: Number.NEGATIVE_INFINITY, kept: 0 }
    this.#told.set(route, told)
    told.kept += entries
    if (now - told.at < TELL_EVERY_MS) return
    this.#log.warn({ route, entries: told.kept }, why)
    told.at = now
    told.kept = 0
  }
}
