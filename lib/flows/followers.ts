/** All followers of a process: their number, what is new in the database, and how far behind they are. */

import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../db/index.ts'
import { HttpError } from '../errors.ts'
import { MAX_FOLLOWERS } from '../limits/limits.ts'
import type { Log } from '../observability/log.ts'
import { readTimeLine } from './resume.ts'

/** Between two looks at what is new. */
const TICK_MS = 250
/** The edge proxy gives up an answer after 45 seconds without a byte. */
const HEARTBEAT_MS = 15_000
/** The edge proxy and the limit for slow readers end an answer after ten minutes. */
const LONGEST_MS = 9 * 60_000

export interface Follower {
  /** When it last had everything, by `performance.now()`. */
  caughtUpAt: number
  /** Called after each look at the database. */
  wake: () => void
}

export class Followers {
  readonly #db: Database
  readonly #log: Log
  readonly #open = new Set<Follower>()
  readonly #reads = new Map<string, Promise<unknown>>()
  #isLooking = false
  /** When the database was last looked at, by `performance.now()`. The next three are from then. */
  lookedAt = 0
  timeLine = ''
  /** All transactions before this one have ended. */
  upper = 0n
  /** The newest transaction that wrote a flow. */
  newest = 0n
  /** A stream has a line at least this often. */
  heartbeatMs = HEARTBEAT_MS
  /** A stream ends after this time. */
  longestMs = LONGEST_MS

  constructor(db: Database, log: Log) {
    this.#db = db
    this.#log = log
  }

  get size(): number {
    return this.#open.size
  }

  /** Seconds since the follower that is furthest behind last had everything. */
  get lagSecs(): number {
    const now = performance.now()
    return Math.max(0, ...[...this.#open].map(({ caughtUpAt }) => now - caughtUpAt)) / 1_000
  }

  /** Throws 503 if there are too many. */
  requireRoom(): void {
    if (this.#open.size >= MAX_FOLLOWERS)
      throw new HttpError(503, `${MAX_FOLLOWERS} clients follow flows here: ask another replica, or retry later`, {
        'retry-after': '5',
      })
  }

  add(follower: Follower): void {
    this.#open.add(follower)
    if (!this.#isLooking) void this.#look()
  }

  delete(follower: Follower): void {
    this.#open.delete(follower)
  }

  /** Followers that stand at the same place with the same filter share one reading. */
  share<T>(key: string, read: () => Promise<T>): Promise<T> {
    const known = this.#reads.get(key) as Promise<T> | undefined
    if (known !== undefined) return known
    const reading = read().finally(() => this.#reads.delete(key))
    this.#reads.set(key, reading)
    return reading
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    while (this.#open.size > 0) {
      try {
        const { name, xmin, newest } = await readTimeLine(this.#db.read)
        this.timeLine = name
        this.upper = BigInt(xmin)
        this.newest = BigInt(newest ?? 0)
        this.lookedAt = performance.now()
      } catch (error) {
        this.#log.debug({ err: error }, 'followers wait: the newest transaction could not be read')
      }
      for (const { wake } of this.#open) wake()
      await delay(TICK_MS)
    }
    this.#isLooking = false
  }
}
