import type { Metrics } from '../../metrics/index.ts'
import type { RateLimitedLog } from '../../observability/rate-limited-log.ts'

/**
 * Entries that were left out of bodies whose other entries were stored. All are counted; the log gets one line a minute
 * and reason at most.
 */
export class Rejections {
  readonly #metrics: Metrics
  readonly #lines: RateLimitedLog

  constructor({ metrics, lines }: { metrics: Metrics; lines: RateLimitedLog }) {
    this.#metrics = metrics
    this.#lines = lines
  }

  /** `route` as `/pod/syscalls`; `entries` is their number, or their numbers by kind of fault; `why` is for the log. */
  note(route: string, entries: number | Readonly<Record<string, number>>, why: string): void {
    const counts = typeof entries === 'number' ? { entries } : entries
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0)
    if (total === 0) return
    this.#metrics.rejectedEntries.inc({ route }, total)
    this.#lines.note(`${route}: ${why}`, counts)
  }
}

/** Counts parameters that a route ignored; the log gets one line a minute. */
export type NoteIgnored = (route: string, parameters: number) => void

export function createNoteIgnored({ metrics, lines }: { metrics: Metrics; lines: RateLimitedLog }): NoteIgnored {
  return (route, parameters) => {
    metrics.ignoredParameters.inc({ route }, parameters)
    lines.note('parameters that their route does not know were ignored', { [route]: parameters })
  }
}
