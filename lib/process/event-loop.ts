/**
 * Long work on the one thread there is: it is cut in slices, and of all the work that waits one slice is done a turn of the event loop,
 * first come first served, so that however many large requests there are, small ones pass between any two slices.
 */

/** Long beside what a turn costs, short beside what anybody waits for. */
export const MAX_SLICE_MS = 12

const waiting: (() => void)[] = []

/** Resolves in a turn of the event loop in which nobody else was told so. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(serve)
  })
}

function serve(): void {
  waiting.shift()!()
  if (waiting.length > 0) setImmediate(serve)
}

/** When the first short work began of this turn of the event loop. */
let begunAt: number | null = null

/**
 * Whether what is short by itself should wait for a turn, because so much of it was done in this one: of requests that arrive together each is
 * begun in the same.
 */
export function isSliceUsedUp(): boolean {
  const now = performance.now()
  if (begunAt === null) {
    begunAt = now
    setImmediate(() => {
      begunAt = null
    })
  }
  return now >= begunAt + MAX_SLICE_MS
}

/** A loop asks before each step whether its slice is over, and if so awaits the next: steps are to be short beside a slice. */
export class Slice {
  #endsAt = performance.now() + MAX_SLICE_MS

  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  async next(): Promise<void> {
    await yieldToEventLoop()
    this.#endsAt = performance.now() + MAX_SLICE_MS
  }
}
