import type { Log } from './log.ts'

const EVERY_MS = 60_000

/**
 * Lines of the log about what each post or answer may give cause for, a minute and subject at most one: the first cause
 * is told of at once, what comes after it in one line when the minute is over. Each line counts what it tells of.
 */
export class MinuteLines {
  readonly #log: Log
  readonly #everyMs: number
  /** Counts since the last line of each subject. */
  readonly #since = new Map<string, Map<string, number>>()

  constructor(log: Log, everyMs = EVERY_MS) {
    this.#log = log
    this.#everyMs = everyMs
  }

  /** `subject` is the text of the line; there are few. */
  note(subject: string, counts: Readonly<Record<string, number>>): void {
    const since = this.#since.get(subject)
    if (since === undefined) this.#say(subject, counts)
    else for (const [what, count] of Object.entries(counts)) since.set(what, (since.get(what) ?? 0) + count)
  }

  #say(subject: string, counts: Readonly<Record<string, number>>): void {
    this.#log.warn(counts, subject)
    this.#since.set(subject, new Map())
    setTimeout(() => {
      const since = this.#since.get(subject)!
      if (since.size === 0) this.#since.delete(subject)
      else this.#say(subject, Object.fromEntries(since))
    }, this.#everyMs).unref()
  }
}
