import type { Log } from './log.ts'

const EVERY_MS = 60_000
/** Subjects with a line in the last minute. Further ones are dropped, so that a flood of causes cannot fill memory. */
const MAX_SUBJECTS = 100

/**
 * Warnings about events that every request may repeat: at most one line a minute for each subject. The first event is
 * logged at once, and the events of the following minute in one line with the sums of their counts.
 */
export class RateLimitedLog {
  readonly #log: Pick<Log, 'warn'>
  /** Counts since the last line of each subject. */
  readonly #sums = new Map<string, Map<string, number>>()
  readonly #timers = new Set<NodeJS.Timeout>()

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log
  }

  /** `subject` is the text of the line; `fields` are constant for a subject and stand in each of its lines. */
  note(subject: string, counts: Readonly<Record<string, number>>, fields: Readonly<Record<string, string>> = {}): void {
    const sums = this.#sums.get(subject)
    if (sums !== undefined)
      for (const [name, count] of Object.entries(counts)) sums.set(name, (sums.get(name) ?? 0) + count)
    else if (this.#sums.size < MAX_SUBJECTS) this.#write(subject, counts, fields)
  }

  /** Ends the timers; the counts since the last lines are lost. */
  end(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#sums.clear()
  }

  #write(subject: string, counts: Readonly<Record<string, number>>, fields: Readonly<Record<string, string>>): void {
    this.#log.warn({ ...fields, ...counts }, subject)
    this.#sums.set(subject, new Map())
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      const sums = this.#sums.get(subject)!
      this.#sums.delete(subject)
      if (sums.size > 0) this.#write(subject, Object.fromEntries(sums), fields)
    }, EVERY_MS).unref()
    this.#timers.add(timer)
  }
}
