import type { Log } from '../observability/log.ts'

/** Distance from our clock at which an agent's is warned of: the stale sweep judges pods by it (interop-core D21). */
const MAX_SKEW_SECS = 300
const WARN_EVERY_MS = 3_600_000
/** Nodes whose warning is remembered: the largest cluster. Names are the client's to choose; those above it are not warned of. */
const MAX_NODES = 5_000

const SHOWN_FOR_MS = 600_000
/** What is forgotten at once; 61 of these are kept at most. */
const SLICE_MS = 10_000

/** How far the clocks of agents are from ours, by the times of the pods that they post. */
export class AgentClocks {
  readonly #log: Log
  readonly #now: () => number
  /** When each node was last warned of, the earliest first. */
  readonly #warnedAt = new Map<string, number>()
  /** The largest distance of each slice of time, in seconds. */
  readonly #largest = new Map<number, number>()

  /** `now` in Unix milliseconds. */
  constructor(log: Log, now: () => number = Date.now) {
    this.#log = log
    this.#now = now
  }

  /** Hears of a post that was accepted; `time` is naive UTC. */
  note(node: string, time: string): void {
    const now = this.#now()
    const skewSecs = (Date.parse(`${time}Z`) - now) / 1000
    const distance = Math.abs(skewSecs)
    const slice = Math.floor(now / SLICE_MS)
    const largest = this.#largest.get(slice)
    if (largest === undefined) this.#forget(now)
    if (largest === undefined || distance > largest) this.#largest.set(slice, distance)
    if (distance > MAX_SKEW_SECS) this.#warn(node, skewSecs, now)
  }

  /** Seconds: the largest distance of the last ten minutes, 0 when nothing was posted in them. */
  largestSecs(): number {
    this.#forget(this.#now())
    return Math.max(0, ...this.#largest.values())
  }

  #warn(node: string, skewSecs: number, now: number): void {
    const isOver = (at: number) => Math.abs(now - at) >= WARN_EVERY_MS
    const last = this.#warnedAt.get(node)
    if (last !== undefined && !isOver(last)) return
    this.#warnedAt.delete(node)
    for (const [name, at] of this.#warnedAt) {
      if (!isOver(at)) break
      this.#warnedAt.delete(name)
    }
    if (this.#warnedAt.size >= MAX_NODES) return
    this.#warnedAt.set(node, now)
    this.#log.warn(
      { node, skewSecs: Math.round(skewSecs) },
      'the clock of an agent is not ours: its pods are marked dead too early or too late',
    )
  }

  /** What is older than is shown, and what our own clock was set back from. */
  #forget(now: number): void {
    const [first, last] = [Math.floor((now - SHOWN_FOR_MS) / SLICE_MS), Math.floor(now / SLICE_MS)]
    for (const slice of this.#largest.keys()) if (slice < first || slice > last) this.#largest.delete(slice)
  }
}
