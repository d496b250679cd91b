import type { Log } from '../observability/log.ts'

/** An agent's clock that differs by more is warned of: the stale sweep depends on it. */
const MAX_SKEW_SECS = 300
const WARN_EVERY_MS = 3_600_000
/**
 * Nodes whose warning is remembered: as many as the largest cluster has. Clients choose the names; nodes beyond the
 * limit are not warned of.
 */
const MAX_NODES = 5_000

const KEPT_FOR_MS = 600_000
/** Granularity of forgetting; at most 61 slices are kept. */
const SLICE_MS = 10_000

/** Tracks how far the clocks of agents differ from ours, by the times of the pods that they post. */
export class AgentClocks {
  readonly #log: Log
  readonly #now: () => number
  /** When each node was last warned of, the earliest first. */
  readonly #warnedAt = new Map<string, number>()
  /** The largest difference per time slice, in seconds. */
  readonly #largest = new Map<number, number>()

  /** `now` in Unix milliseconds. */
  constructor(log: Log, now: () => number = Date.now) {
    this.#log = log
    this.#now = now
  }

  /** Records an accepted post; `time` is naive UTC. */
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

  /** The largest difference of the last ten minutes in seconds, 0 without posts. */
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
      'the clock of an agent differs from ours: its pods are marked dead too early or too late',
    )
  }

  /** Drops slices that are too old, and slices of the future after our own clock was set back. */
  #forget(now: number): void {
    const [first, last] = [Math.floor((now - KEPT_FOR_MS) / SLICE_MS), Math.floor(now / SLICE_MS)]
    for (const slice of this.#largest.keys()) if (slice < first || slice > last) this.#largest.delete(slice)
  }
}
