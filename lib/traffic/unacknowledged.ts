interface Options {
  readonly maxFlows: number
  readonly maxAgeMs: number
  /** The clock: monotonic milliseconds. */
  readonly now: () => number
}

/** A flow that may be stored although its sender got no acknowledgement. */
interface Unacknowledged {
  /** See `flowKey`. */
  readonly key: string | null
  /** True if it is stored and `onStored` was called for it. */
  readonly isReported: boolean
  readonly at: number
}

/**
 * Flows that may be stored although their post was answered with an error: the answer of the database was lost, or
 * another statement of the same post failed. Agents repeat the post with the same uuids, and the stored flows then
 * count as inserted (docs/contract.md#deduplication). The database always decides whether they are stored, so entries
 * here cannot cause wrong answers, whichever server answers. Their number and age are bounded; the oldest are dropped
 * first.
 */
export class UnacknowledgedFlows {
  readonly #options: Options
  /** By `uuidOfDay`, in the order of arrival. */
  readonly #flows = new Map<string, Unacknowledged>()
  /** Number of flows per key. */
  readonly #keys = new Map<string, number>()

  constructor(options: Options) {
    this.#options = options
  }

  get size(): number {
    return this.#flows.size
  }

  get(uuidOfDay: string): Unacknowledged | undefined {
    return this.#flows.get(uuidOfDay)
  }

  /** Whether a flow has the key: then its repeat must not be dropped as a duplicate. */
  hasKey(key: string): boolean {
    return this.#keys.has(key)
  }

  add(uuidOfDay: string, key: string | null, isReported: boolean): void {
    const wasReported = this.#flows.get(uuidOfDay)?.isReported ?? false
    this.delete(uuidOfDay)
    this.#expire()
    this.#flows.set(uuidOfDay, { key, isReported: isReported || wasReported, at: this.#options.now() })
    if (key !== null) this.#keys.set(key, (this.#keys.get(key) ?? 0) + 1)
  }

  delete(uuidOfDay: string): void {
    const flow = this.#flows.get(uuidOfDay)
    if (flow === undefined) return
    this.#flows.delete(uuidOfDay)
    if (flow.key === null) return
    const others = this.#keys.get(flow.key)! - 1
    if (others === 0) this.#keys.delete(flow.key)
    else this.#keys.set(flow.key, others)
  }

  /** Makes room for one more and drops old ones. */
  #expire(): void {
    const oldest = this.#options.now() - this.#options.maxAgeMs
    for (const [uuidOfDay, { at }] of this.#flows) {
      if (at > oldest && this.#flows.size < this.#options.maxFlows) return
      this.delete(uuidOfDay)
    }
  }
}
