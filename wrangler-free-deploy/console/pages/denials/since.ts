/** The beginning of the window of denials. Their route takes no relative times. */
import { momentMs, zonedText } from '../../parts/moment.ts'

const HOUR_MS = 3_600_000

export interface Since {
  /** The parameter of the request; null for none. */
  readonly asked: string | null
  /** The same for a command, which is not repeated: the beginning itself. */
  readonly exact: string | null
  /** Rows that were seen last before this time are not in the window. */
  readonly fromMs: number
}

/**
 * The broker is asked from a full hour on, so that the request stays the same for an hour. A text that is no time is
 * sent as it is: the broker refuses it.
 */
export function sinceOf(text: string | null, nowMs: number): Since {
  if (text === null || text === '') return { asked: null, exact: null, fromMs: 0 }
  const fromMs = momentMs(text, nowMs)
  if (Number.isNaN(fromMs)) return { asked: text, exact: text, fromMs: 0 }
  return { asked: zonedText(Math.floor(fromMs / HOUR_MS) * HOUR_MS), exact: zonedText(fromMs), fromMs }
}
