/** Caches the body of the list, which is rebuilt at most once in an interval (docs/contract.md#seccomp-profiles). */
import type { CachedBody } from '../http/response/cached-body.ts'

export interface ProfileCacheOptions {
  /** From the start of a build; 0 makes the list for each request. */
  readonly ttlMs: number
  readonly build: () => Promise<CachedBody>
  /** Monotonic milliseconds. */
  readonly now?: () => number
  /** A read that had nothing made, or waited for what another had made. */
  readonly onHit: () => void
  /** A read that had it made. */
  readonly onMiss: () => void
}

/**
 * One body, as good for every caller while it is fresh. Who asks while it is being made waits for that, whatever its age will be, so that a
 * crowd makes one. When making it fails, everyone who waited hears why, nothing is kept, and who asks next has it made again: there is
 * no other attempt that a fault could hold up. It goes on when callers leave, since others may wait.
 */
export class ProfileCache {
  readonly #options: ProfileCacheOptions
  readonly #now: () => number
  #latest: CachedBody | null = null
  #freshUntil = Number.NEGATIVE_INFINITY
  #building: Promise<CachedBody> | null = null
  /** Counts calls of `forget`. */
  #forgotten = 0

  constructor(options: ProfileCacheOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** A fresh body. */
  async read(): Promise<CachedBody> {
    const { onHit, onMiss } = this.#options
    if (this.#latest !== null && this.#now() < this.#freshUntil) {
      onHit()
      return this.#latest
    }
    if (this.#building !== null) {
      const body = await this.#building
      onHit()
      return body
    }
    onMiss()
    this.#building = this.#build().finally(() => {
      this.#building = null
    })
    return this.#building
  }

  /** The body that was made last, which is at least as new as any that was read. Who waits for something else keeps no older one alive. */
  get latest(): CachedBody {
    if (this.#latest === null) throw new TypeError('nothing was read yet')
    return this.#latest
  }

  /** The next read makes it anew. */
  forget(): void {
    this.#forgotten++
    this.#freshUntil = Number.NEGATIVE_INFINITY
  }

  async #build(): Promise<CachedBody> {
    const startedAt = this.#now()
    const forgotten = this.#forgotten
    const body = await this.#options.build()
    this.#latest = body
    if (forgotten === this.#forgotten) this.#freshUntil = startedAt + this.#options.ttlMs
    return body
  }
}
