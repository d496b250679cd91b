import { HttpError } from '../http/errors.ts'

interface Waiting {
  readonly admit: () => void
}

/** One at a time, first come first served, with room for so many who wait. */
export class Turnstile {
  readonly #maxWaiting: number
  readonly #retryAfterSeconds: number
  readonly #waiting = new Set<Waiting>()
  #isTaken = false

  constructor(maxWaiting: number, retryAfterSeconds: number) {
    this.#maxWaiting = maxWaiting
    this.#retryAfterSeconds = retryAfterSeconds
  }

  /** Who waits now. */
  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Resolves when it is one's turn, to what ends it. Rejects at once with a 503 where too many wait; `leaver` is given what to call when
   * whoever waits has left: it rejects then, and the room is free for another.
   */
  turn(leaver: (leave: () => void) => void): Promise<() => void> {
    if (!this.#isTaken) {
      this.#isTaken = true
      return Promise.resolve(this.#ending())
    }
    if (this.#waiting.size >= this.#maxWaiting) {
      const seconds = this.#retryAfterSeconds
      const text = `${this.#maxWaiting} payloads are waiting to be stored; retry in ${seconds} seconds`
      return Promise.reject(new HttpError(503, text, { 'retry-after': String(seconds) }))
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { admit: () => resolve(this.#ending()) }
      this.#waiting.add(waiting)
      leaver(() => {
        if (this.#waiting.delete(waiting)) reject(new HttpError(400, 'the client left before its payload was read'))
      })
    })
  }

  #ending(): () => void {
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const [next] = this.#waiting
      if (next === undefined) {
        this.#isTaken = false
        return
      }
      this.#waiting.delete(next)
      next.admit()
    }
  }
}
