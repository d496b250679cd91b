/** A background job, and the loops that jobs run. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Config } from '../lib/config/index.ts'
import type { Database } from '../lib/db/index.ts'
import type { Log } from '../lib/observability/log.ts'
import type { JobName } from './locks.ts'

/** A pass may come early or late by this share of its interval, so that replicas do not run all at once. */
export const JITTER = 0.1

export interface JobContext {
  readonly config: Config
  /** Jobs use only the gate `job`. */
  readonly db: Database
  readonly log: Log
  /** Checked between batches. */
  readonly signal: AbortSignal
}

export interface Job {
  readonly name: JobName
  /** Seconds between the end of a pass and the next; null turns the job off. */
  everySecs(config: Config): number | null
  /** Seconds from the start of a process to its first pass; by default one interval. */
  readonly firstAfterSecs?: number
  run(context: JobContext): Promise<Pass>
  /** Returns how many rows a pass would change now. Changes nothing and takes no lock. */
  count(context: JobContext): Promise<number>
}

/**
 * `done`: nothing is left. `capped`: the limit of a pass was reached, the next pass does the rest.
 * `skipped`: another process runs the job. `aborted`: the process stops; completed batches stay.
 * `held up`: another session held a lock for too long; completed batches stay, the next pass does the rest.
 * `failed`: for a reason outside the service, which is not reported; the next pass comes at its usual time.
 */
export type PassOutcome = 'done' | 'capped' | 'skipped' | 'aborted' | 'held up' | 'failed'

export interface Pass {
  readonly outcome: PassOutcome
  /** Rows changed. */
  readonly rows: number
  readonly batches: number
}

/** The result of one statement. */
export interface Batch {
  /** False if another process holds the lock of the job; then nothing was done. */
  readonly isHeld: boolean
  readonly rows: number
  readonly isLast: boolean
}

/**
 * Runs batches until one is the last, at most `maxBatches`. After each it waits `rest` times the batch's own duration.
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
 * `inBatches` for long work: waits three times as long as each batch took. A deletion keeps one core busy; at a quarter
 * of one core, a machine with two cores loses an eighth of its ingest capacity.
 */
export const inRestedBatches = (signal: AbortSignal, maxBatches: number, next: () => Promise<Batch>): Promise<Pass> =>
  inBatches(signal, maxBatches, next, 3)

/** `inRestedBatches` over several kinds of rows: begins the next kind after the last batch of the one before. */
export function inRestedBatchesOf(
  signal: AbortSignal,
  maxBatches: number,
  kinds: readonly (() => Promise<Batch>)[],
): Promise<Pass> {
  let kind = 0
  return inRestedBatches(signal, maxBatches, async () => {
    const batch = await kinds[kind]!()
    if (!batch.isHeld || !batch.isLast || kind === kinds.length - 1) return batch
    kind++
    return { ...batch, isLast: false }
  })
}

export const NOTHING: Pass = { outcome: 'done', rows: 0, batches: 0 }

const WORST: readonly PassOutcome[] = ['aborted', 'skipped', 'failed', 'held up', 'capped', 'done']

/** The sum of two passes, with the worse outcome. */
export const joinPasses = (a: Pass, b: Pass): Pass => ({
  outcome: WORST.find((outcome) => outcome === a.outcome || outcome === b.outcome)!,
  rows: a.rows + b.rows,
  batches: a.batches + b.batches,
})

export const isStopped = ({ outcome }: Pass): boolean => outcome === 'skipped' || outcome === 'aborted'

/** Runs steps in order, up to one that is skipped or aborted. The outcome is `done` only if each one is. */
export async function inSequence(steps: readonly (() => Promise<Pass>)[]): Promise<Pass> {
  let pass = NOTHING
  for (const step of steps) {
    const next = await step()
    pass = {
      outcome: next.outcome === 'done' ? pass.outcome : next.outcome,
      rows: pass.rows + next.rows,
      batches: pass.batches + next.batches,
    }
    if (isStopped(next)) break
  }
  return pass
}
