/**
 * Sends batches, at most `max` of them at a time. What arrives when none is in flight is sent at once. While one is in flight,
 * what else arrives in the same turn of the event loop shares a free lane, and with all lanes busy it waits for one to end.
 */
export class Lanes<Batch> {
  readonly inFlight = new Set<Batch>()
  readonly #max: number
  readonly #take: () => Batch | null
  readonly #send: (batch: Batch) => void
  #isGathering = false

  /** `take` makes the next batch of what waits, null when nothing can be sent; after `send`, `finish` is called exactly once a batch. */
  constructor(max: number, take: () => Batch | null, send: (batch: Batch) => void) {
    this.#max = max
    this.#take = take
    this.#send = send
  }

  /** To be called after each arrival. */
  start(): void {
    if (this.inFlight.size === 0) this.#sendNext()
    else if (this.inFlight.size < this.#max && !this.#isGathering) {
      this.#isGathering = true
      setImmediate(() => {
        this.#isGathering = false
        if (this.inFlight.size < this.#max) this.#sendNext()
      })
    }
  }

  /** Frees the lane of the batch; what waits goes on in all free lanes. */
  finish(batch: Batch): void {
    this.inFlight.delete(batch)
    while (this.inFlight.size < this.#max && this.#sendNext());
  }

  #sendNext(): boolean {
    const batch = this.#take()
    if (batch === null) return false
    this.inFlight.add(batch)
    this.#send(batch)
    return true
  }
}
