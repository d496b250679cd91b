import { causeOf } from './causes.ts'
import { DatabaseRefused, type DatabaseUnavailable } from './errors.ts'

const EVERY_MS = 60_000
/** Causes told apart at once; more than these are never seen. */
const MAX_CAUSES = 100

/**
 * One line a minute for each cause that keeps statements from being answered: the first statement is told of at once, what came after it
 * when the minute is over. Lines hold our words and, where
 * there was no statement to speak of, those of the server.
 */
export class Complaints {
  readonly #warn: (fields: object, message: string) => void
  /** Statements since the last line, by code. */
  readonly #since = new Map<string, number>()
  readonly #timers = new Set<NodeJS.Timeout>()

  constructor(warn: (fields: object, message: string) => void) {
    this.#warn = warn
  }

  /** A statement was given up for this. */
  note(error: DatabaseUnavailable): void {
    const { code } = error
    const since = this.#since.get(code)
    if (since !== undefined) this.#since.set(code, since + 1)
    else if (this.#since.size < MAX_CAUSES) {
      const { cause, remedy } = causeOf(code)
      const subject = error instanceof DatabaseRefused ? 'database refuses' : 'database unavailable'
      this.#say(code, `${subject}: ${cause} (${code}); ${remedy}`, 1)
    }
  }

  end(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
    this.#since.clear()
  }

  #say(code: string, text: string, statements: number): void {
    this.#warn({ code, statements }, text)
    this.#since.set(code, 0)
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      const since = this.#since.get(code)!
      if (since === 0) this.#since.delete(code)
      else this.#say(code, text, since)
    }, EVERY_MS).unref()
    this.#timers.add(timer)
  }
}
