import { HttpError } from '../http/errors.ts'

export interface SemaphoreOptions {
  /** Bytes of those who wait, in all. */
  maxBytes: number
  /** What one of them comes to at least, however small it is. */
  leastBytes: number
  retryAfterSeconds: number
}

interface Waiting {
  readonly bytes: number
  readonly admit: () => void
}

/** One at a time, first come first served, with room for so many bytes of those who wait. */
export class Semaphore {
  readonly #options: SemaphoreOptions
  readonly #waiting = new Set<Waiting>()
  #bytes = 0
  #isTaken = false

  constructor(options: SemaphoreOptions) {
    this.#options = options
  }

  /** Who waits now. */
  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Resolves when it is one's turn, to what ends it. Rejects at once with a 503 where there is no room for `size` bytes; `leaver` is given what to call when
   * whoever waits has left: it rejects then, and the room is free for another.
   */
  turn(size: number, leaver: (leave: () => void) => void): Promise<() => void> {
    if (!this.#isTaken) {
      this.#isTaken = true
      return Promise.resolve(this.#ending())
    }
    const { maxBytes, leastBytes, retryAfterSeconds: seconds } = this.#options
    const bytes = Math.max(size, leastBytes)
    if (this.#bytes + bytes > maxBytes) {
      const text = `${this.#waiting.size} payloads are waiting to be stored; retry in ${seconds} seconds`
      return Promise.reject(new HttpError(503, text, { 'retry-after': String(seconds) }))
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { bytes, admit: () => resolve(this.#ending()) }
      this.#waiting.add(waiting)
      this.#bytes += bytes
      leaver(() => {
        if (this.#leaves(waiting)) reject(new HttpError(400, 'the client left before its payload was read'))
      })
    })
  }

  /** Whether it was waiting. */
  #leaves(waiting: Waiting): boolean {
    const wasThere = this.#waiting.delete(waiting)
    if (wasThere) this.#bytes -= waiting.bytes
    return wasThere
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
      this.#leaves(next)
      next.admit()
    }
  }
}
