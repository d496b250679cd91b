/**
 * Keys of flows that the database confirmed lately, inserted or found duplicate: their repeats need not ask again. Two
 * generations bound both the number of keys and their age; a hit does not renew a key, so the database is asked again within
 * two `generationMs`.
 */
export class SeenFlows {
  readonly #maxKeys: number
  readonly #generationMs: number
  readonly #now: () => number
  #young = new Set<string>()
  #old = new Set<string>()
  #turnsAt: number

  /** `maxKeys` per generation; `now` in milliseconds, monotonic. */
  constructor(options: { maxKeys: number; generationMs: number; now: () => number }) {
    this.#maxKeys = options.maxKeys
    this.#generationMs = options.generationMs
    this.#now = options.now
    this.#turnsAt = options.now() + options.generationMs
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  has(key: string): boolean {
    return this.#young.has(key) || this.#old.has(key)
  }

  add(key: string): void {
    if (this.#young.size >= this.#maxKeys) this.#turn()
    this.#young.add(key)
  }

  /** Drops what is too old; called once a batch. */
  expire(): void {
    const late = this.#now() - this.#turnsAt
    if (late < 0) return
    this.#turn()
    if (late >= this.#generationMs) this.#old = new Set()
    // On schedule, however late this call: else what is old now would see up to a third generation.
    else this.#turnsAt -= late
  }

  clear(): void {
    this.#young = new Set()
    this.#old = new Set()
  }

  #turn(): void {
    this.#old = this.#young
    this.#young = new Set()
    this.#turnsAt = this.#now() + this.#generationMs
  }
}
