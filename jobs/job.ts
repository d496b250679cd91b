/** What a job is, and the loop that each of them runs. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../lib/config.ts'
import type { Database } from '../lib/db/index.ts'
import type { Log } from '../lib/observability/log.ts'
import type { JobName } from './locks.ts'

/** Share of the interval by which a pass may come early or late, so that replicas do not come all at once. */
export const JITTER = 0.1

export interface JobContext {
  readonly config: Config
  /** Jobs use the gate `job` only. */
  readonly db: Database
  readonly log: Log
  /** Looked at between batches. */
  readonly signal: AbortSignal
}

export interface Job {
  readonly name: JobName
  /** Seconds between the end of a pass and the next; null: turned off. */
  everySecs(config: Config): number | null
  /** Seconds from the start of a process to its first pass; without it, a job sleeps its interval first. */
  readonly firstAfterSecs?: number
  run(context: JobContext): Promise<Pass>
  /** How many rows a pass would change now; changes none and takes no lock. */
  count(context: JobContext): Promise<number>
}

/**
 * `done`: nothing was left. `capped`: the bound of a pass was reached, the rest is for the next.
 * `skipped`: another process is at it, and does what is left. `aborted`: told to stop, what was done stays done.
 * `held up`: somebody had a lock on a table or row for too long; what was done stays done, the rest is for the next.
 * `failed`: for a reason outside the service, which is nothing to report; the next pass is at its usual time.
 */
export type Outcome = 'done' | 'capped' | 'skipped' | 'aborted' | 'held up' | 'failed'

export interface Pass {
  readonly outcome: Outcome
  /** Rows changed. */
  readonly rows: number
  readonly batches: number
}

/** What one statement did. */
export interface Batch {
  /** Whether it got the lock; without it nothing was done. */
  readonly isHeld: boolean
  readonly rows: number
  readonly isLast: boolean
}

/**
 * Runs batch after batch until one says it was the last, at most `maxBatches` of them. `rest`: how long to wait after each, in
 * times of what it took.
 */
export async function inBatches(
  signal: AbortSignal,
  maxBatches: number,
  next: () => Promise<Batch>,
  rest = 0,
): Promise<Pass> {
  let rows = 0
  for (let batches = 0; batches < maxBatches; batches++) {
    if (signal.aborted) return { outcome: 'aborted', rows, batches }
    const startedAt = performance.now()
    const batch = await next()
    if (!batch.isHeld) return { outcome: 'skipped', rows, batches }
    rows += batch.rows
    if (batch.isLast) return { outcome: 'done', rows, batches: batches + 1 }
    if (rest > 0) await delay(rest * (performance.now() - startedAt), undefined, { signal }).catch(() => {})
  }
  return { outcome: 'capped', rows, batches: maxBatches }
}

/**
 * The same for what deletes: after each batch a rest of three times what it took. A statement that deletes keeps a core busy, and
 * with a quarter of one gone a machine of two loses an eighth of its ingest.
 */
export const inRestedBatches = (signal: AbortSignal, maxBatches: number, next: () => Promise<Batch>): Promise<Pass> =>
  inBatches(signal, maxBatches, next, 3)
