import type { Metrics } from '../../metrics/index.ts'
import type { RateLimitedLog } from '../../observability/rate-limited-log.ts'

/** Counts parameters that a route ignored; the log gets one line a minute. */
export type NoteIgnored = (route: string, parameters: number) => void

export function createNoteIgnored({ metrics, lines }: { metrics: Metrics; lines: RateLimitedLog }): NoteIgnored {
  return (route, parameters) => {
    metrics.ignoredParameters.inc({ route }, parameters)
    lines.note('parameters that their route does not know were ignored', { [route]: parameters })
  }
}
