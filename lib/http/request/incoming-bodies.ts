import { HttpError } from '../errors.ts'

/** A body up to this is never cut: ordinary posts pass whatever else is on its way. */
export const NEVER_CUT_BYTES = 64 * 1024

/** A body on its way in, and then for as long as it is held as bytes. */
export interface IncomingBody {
  /** Counts bytes that have come. May cut this arrival or others. */
  add(bytes: number): void
  /** All of it has come: from now on it is not cut. */
  complete(): void
  /** Its bytes are gone. */
  end(): void
}

/**
 * The bytes of bodies that have come and are not parsed yet: outside the heap, and memory all the same. Over the limit that large body is
 * cut that has been on its way the longest: who sends at an honest rate is done while others dawdle.
 */
export class IncomingBodies {
  readonly #maxBytes: number
  /** The large ones of which more is to come, the oldest first. */
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

  /** Bodies cut so far. */
  get cuts(): number {
    return this.#cuts
  }

  /** `refuse` is called when the body must go, with a 503: its bytes no longer count then, and none of it may be kept. */
  open(refuse: (error: HttpError) => void): IncomingBody {
    let held = 0
    let isComplete = false
    const arrival: IncomingBody = {
      add: (bytes) => {
        held += bytes
        this.#bytes += bytes
        if (!isComplete && held > NEVER_CUT_BYTES) this.#arriving.add(entry)
        if (this.#bytes > this.#maxBytes) this.#makeRoom()
      },
      complete: () => {
        isComplete = true
        this.#arriving.delete(entry)
      },
      end: () => {
        arrival.complete()
        this.#bytes -= held
        held = 0
      },
    }
    const entry = {
      cut: () => {
        arrival.end()
        refuse(
          new HttpError(503, `too many bodies at once: more than ${this.#maxBytes} bytes; retry in a moment`, {
            'retry-after': '1',
          }),
        )
      },
    }
    return arrival
  }

  #makeRoom(): void {
    for (const entry of this.#arriving) {
      if (this.#bytes <= this.#maxBytes) return
      this.#cuts++
      entry.cut()
    }
  }
}
