import { HttpError } from '../../errors.ts'
import { ALWAYS_ACCEPTED_BYTES } from '../../limits/limits.ts'

/** Counts one body from its first byte until its bytes are released. */
export interface IncomingBody {
  /** Counts bytes that have arrived. May refuse this body or others. */
  add(bytes: number): void
  /** The whole body has arrived: from now on it is not refused. */
  complete(): void
  /** Its bytes are released. */
  end(): void
}

/**
 * Bounds the bytes of bodies that have arrived and are not parsed yet: they lie outside the heap. Over the limit it
 * refuses the large body that has been arriving the longest: a client with an ordinary rate is done while slow ones are
 * still sending.
 */
export class IncomingBodies {
  readonly #maxBytes: number
  /** The large ones that are still arriving, the oldest first. */
  readonly #arriving = new Set<{ readonly cut: () => void }>()
  #bytes = 0
  #cuts = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes
  }

  /** Bodies refused so far. */
  get cuts(): number {
    return this.#cuts
  }

  /**
   * `refuse` is called with a 503 when the body must be dropped: its bytes no longer count then, and none of them may
   * be kept.
   */
  open(refuse: (error: HttpError) => void): IncomingBody {
    let held = 0
    let isComplete = false
    const body: IncomingBody = {
      add: (bytes) => {
        held += bytes
        this.#bytes += bytes
        if (!isComplete && held > ALWAYS_ACCEPTED_BYTES) this.#arriving.add(entry)
        if (this.#bytes > this.#maxBytes) this.#makeRoom()
      },
      complete: () => {
        isComplete = true
        this.#arriving.delete(entry)
      },
      end: () => {
        body.complete()
        this.#bytes -= held
        held = 0
      },
    }
    const entry = {
      cut: () => {
        body.end()
        const text = `too many bodies at once: more than ${this.#maxBytes} bytes; retry in a moment, or add replicas`
        refuse(new HttpError(503, text, { 'retry-after': '1' }))
      },
    }
    return body
  }

  #makeRoom(): void {
    for (const entry of this.#arriving) {
      if (this.#bytes <= this.#maxBytes) return
      this.#cuts++
      entry.cut()
    }
  }
}
