/** Caches the body of the list, which is rebuilt at most once in an interval (docs/contract.md#seccomp-profiles). */
import type { CachedBody } from '../http/response/cached-body.ts'

interface ProfileCacheOptions {
  /** Counted from the start of a build; 0 builds the list for each request. */
  readonly ttlMs: number
  readonly build: () => Promise<CachedBody>
  /** The clock: monotonic milliseconds. */
  readonly now?: () => number
  /** A read used a cached body, or waited for a build in progress. */
  readonly onHit: () => void
  /** A read started a build. */
  readonly onMiss: () => void
}

/**
 * Caches one body, which is the same for every caller while it is fresh. Callers that arrive during a build wait for
 * its result, whatever its age will be, so a crowd causes one build. If the build fails, all waiting callers get its
 * error, nothing is cached, and the next caller starts another build. A build continues when its callers disconnect,
 * since others may wait for it.
 */
export class ProfileCache {
  readonly #options: ProfileCacheOptions
  readonly #now: () => number
  #latest: CachedBody | null = null
  #freshUntil = Number.NEGATIVE_INFINITY
  #building: Promise<CachedBody> | null = null
  /** Number of calls of `forget`. */
  #forgotten = 0

  constructor(options: ProfileCacheOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** Returns a fresh body, and builds it if needed. */
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

  /**
   * The last body built, at least as new as any that `read` returned. A caller that waits for something else uses it
   * instead of keeping an older body in memory.
   */
  get latest(): CachedBody {
    if (this.#latest === null) throw new TypeError('nothing was read yet')
    return this.#latest
  }

  /** Makes the next read build the body again. */
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
