/**
 * Sends batches, at most `max` of them at a time. What arrives when none is in flight is sent at once. While one is in flight,
 * what else arrives in the same turn of the event loop shares a free lane; with all lanes busy it waits until one is free.
 * With `patienceMs` a second lane is taken only when no batch has ended for so long: quick statements then travel one behind the other,
 * each for more callers, and a slow one holds up nobody for long.
 * `take` makes the next batch of what waits, null when nothing can be sent. After `send`, `finish` is to be called once, and later.
 */
export function createLanes<Batch>(
  max: number,
  take: () => Batch | null,
  send: (batch: Batch) => void,
  patienceMs = 0,
) {
  const inFlight = new Set<Batch>()
  let isGathering = false
  let timer: NodeJS.Timeout | undefined

  function sendNext(): boolean {
    const batch = take()
    if (batch === null) return false
    inFlight.add(batch)
    send(batch)
    return true
  }

  function gather(): void {
    isGathering = true
    if (patienceMs === 0) setImmediate(gathered)
    else timer = setTimeout(gathered, patienceMs)
  }

  function gathered(): void {
    isGathering = false
    if (inFlight.size < max) sendNext()
  }

  return {
    inFlight: inFlight as ReadonlySet<Batch>,
    /** Something has arrived. */
    start(): void {
      if (inFlight.size === 0) sendNext()
      else if (inFlight.size < max && !isGathering) gather()
    },
    /** The batch is done: what waits goes on in all free lanes, or with patience in the first. */
    finish(batch: Batch): void {
      inFlight.delete(batch)
      if (patienceMs === 0) {
        while (inFlight.size < max && sendNext());
        return
      }
      clearTimeout(timer)
      isGathering = false
      if (inFlight.size > 0 || sendNext()) gather()
    },
  }
}
