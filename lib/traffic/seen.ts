interface Options {
  /** Of one generation. */
  readonly maxKeys: number
  readonly generationMs: number
  /** The clock: monotonic milliseconds. */
  readonly now: () => number
}

/**
 * Keys of flows that the database recently inserted or found to be duplicates: their repeats need no query. Two
 * generations bound both number and age of the keys; a hit does not renew a key, so the database is asked again within
 * two `generationMs`. `clear` is called when rows may be gone: after lost connections and after deletions of flows.
 */
export class SeenFlows {
  readonly #options: Options
  #young = new Set<string>()
  #old = new Set<string>()
  #rotatesAt: number
  #epoch = 0

  constructor(options: Options) {
    this.#options = options
    this.#rotatesAt = options.now() + options.generationMs
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  has(key: string): boolean {
    return this.#young.has(key) || this.#old.has(key)
  }

  /** Incremented by every `clear`. */
  get epoch(): number {
    return this.#epoch
  }

  /** `since` is the epoch at the time of the query: an answer from before a `clear` is ignored. */
  add(key: string, since = this.#epoch): void {
    if (since !== this.#epoch) return
    if (this.#young.size >= this.#options.maxKeys) this.#rotate()
    this.#young.add(key)
  }

  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }

  /** Drops old keys; called once per post. */
  expire(): void {
    const late = this.#options.now() - this.#rotatesAt
    if (late < 0) return
    this.#rotate()
    if (late >= this.#options.generationMs) this.#old = new Set()
    // Keep to the schedule even if this call is late: otherwise old keys could live for a third generation.
    else this.#rotatesAt -= late
  }

  clear(): void {
    this.#epoch++
    this.#young = new Set()
    this.#old = new Set()
  }

  #rotate(): void {
    this.#old = this.#young
    this.#young = new Set()
    this.#rotatesAt = this.#options.now() + this.#options.generationMs
  }
}
