/**
 * Sends batches, at most `max` of them at a time. What arrives when none is in flight is sent at once. While one is in flight,
 * what else arrives in the same turn of the event loop shares a free lane; with all lanes busy it waits until one is free.
 * `take` makes the next batch of what waits, null when nothing can be sent. After `send`, `finish` is to be called once, and later.
 */
export function createLanes<Batch>(max: number, take: () => Batch | null, send: (batch: Batch) => void) {
  const inFlight = new Set<Batch>()
  let isGathering = false

  function sendNext(): boolean {
    const batch = take()
    if (batch === null) return false
    inFlight.add(batch)
    send(batch)
    return true
  }

  return {
    inFlight: inFlight as ReadonlySet<Batch>,
    /** Something has arrived. */
    start(): void {
      if (inFlight.size === 0) sendNext()
      else if (inFlight.size < max && !isGathering) {
        isGathering = true
        setImmediate(() => {
          isGathering = false
          if (inFlight.size < max) sendNext()
        })
      }
    },
    /** The batch is done: what waits goes on in all free lanes. */
    finish(batch: Batch): void {
      inFlight.delete(batch)
      while (inFlight.size < max && sendNext());
    },
  }
}
