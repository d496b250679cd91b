/**
 * Keys of flows that the database confirmed lately, inserted or found duplicate: their repeats need not ask again. Two
 * generations bound both the number of keys and their age; a hit does not renew a key, so the database is asked again within
 * two `generationMs`. Cleared when rows may be gone: when connections were lost, and when flows were deleted.
 */
export class SeenFlows {
  readonly #maxKeys: number
  readonly #generationMs: number
  readonly #now: () => number
  #young = new Set<string>()
  #old = new Set<string>()
  #turnsAt: number
  #epoch = 0

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

  /** Grows with every `clear`. */
  get epoch(): number {
    return this.#epoch
  }

  /** `since` is the epoch when the database was asked: what it said before a `clear` counts no more. */
  add(key: string, since = this.#epoch): void {
    if (since !== this.#epoch) return
    if (this.#young.size >= this.#maxKeys) this.#turn()
    this.#young.add(key)
  }

  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
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
    this.#epoch++
    this.#young = new Set()
    this.#old = new Set()
  }

  #turn(): void {
    this.#old = this.#young
    this.#young = new Set()
    this.#turnsAt = this.#now() + this.#generationMs
  }
}
