import { HttpError } from '../errors.ts'

export interface SemaphoreOptions {
  /** Bytes of all waiters. */
  maxBytes: number
  /** A waiter counts for at least this much. */
  leastBytes: number
  retryAfterSeconds: number
}

interface Waiter {
  readonly bytes: number
  readonly admit: () => void
}

/** Admits one at a time, first come, first served. The bytes of all waiters are bounded. */
export class Semaphore {
  readonly #options: SemaphoreOptions
  readonly #waiting = new Set<Waiter>()
  #bytes = 0
  #isTaken = false

  constructor(options: SemaphoreOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /**
   * Resolves to the function that releases the semaphore, once no other holds it. Rejects at once with 503 if there is
   * no room for `size` more bytes of waiters. `onWaiting` gets a function to call when the client disconnects: it
   * rejects the promise and frees the room.
   */
  acquire(size: number, onWaiting: (leave: () => void) => void): Promise<() => void> {
    if (!this.#isTaken) {
      this.#isTaken = true
      return Promise.resolve(this.#releaseOnce())
    }
    const { maxBytes, leastBytes, retryAfterSeconds: seconds } = this.#options
    const bytes = Math.max(size, leastBytes)
    if (this.#bytes + bytes > maxBytes) {
      const text = `${this.#waiting.size} payloads are waiting to be stored; retry in ${seconds} seconds`
      return Promise.reject(new HttpError(503, text, { 'retry-after': String(seconds) }))
    }
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { bytes, admit: () => resolve(this.#releaseOnce()) }
      this.#waiting.add(waiter)
      this.#bytes += bytes
      onWaiting(() => {
        if (this.#remove(waiter)) reject(new HttpError(400, 'the client left before its payload was read'))
      })
    })
  }

  /** Returns false if it was no longer waiting. */
  #remove(waiter: Waiter): boolean {
    const wasThere = this.#waiting.delete(waiter)
    if (wasThere) this.#bytes -= waiter.bytes
    return wasThere
  }

  #releaseOnce(): () => void {
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      const [next] = this.#waiting
      if (next === undefined) {
        this.#isTaken = false
        return
      }
      this.#remove(next)
      next.admit()
    }
  }
}
