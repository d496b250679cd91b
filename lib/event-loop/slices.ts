/**
 * Cuts long work on the event loop into slices. One slice of all the waiting work runs per iteration of the event loop,
 * first come, first served. So however many large requests there are, small ones run between any two slices.
 */

/** Long compared with the cost of an iteration, short compared with any response time. */
export const MAX_SLICE_MS = 12

const waiting: (() => void)[] = []

/** Resolves in an iteration of the event loop in which it resolves for no other caller. */
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

/** The time of the first call of `isSliceUsedUp` in this iteration of the event loop. */
let begunAt: number | null = null

/**
 * Whether work that is short by itself should call `yieldToEventLoop` first, because short work has already used up a
 * slice in this iteration: requests that arrive together all begin in the same one.
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

/** A loop checks `isOver` before each step, and awaits `next` if it is. A step must be short compared with a slice. */
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
