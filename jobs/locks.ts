import type { Sql } from '../lib/db/index.ts'

/** First key of every job lock. Migrations use another one in the same two-key space. */
const LOCK_SPACE = 0x6a6f_6273

/** Second key. Never changes: processes of two releases must agree on it. */
export const JOB_LOCKS = {
  'late-resolve': 1,
  'stale-sweep': 2,
  'audit-retention': 3,
  'dead-pod-retention': 4,
  'traffic-retention': 5,
  'image-inventory-retention': 6,
  'supply-chain-refresh': 7,
  'attestation-retention': 8,
  'seccomp-denial-retention': 9,
  'runtime-retention': 10,
  'compute-fold': 11,
  'compute-retention': 12,
  'version-check': 13,
  'flow-edges': 14,
  'profile-snapshots': 15,
  'profile-retention': 16,
} as const

export type JobName = keyof typeof JOB_LOCKS

/**
 * The first CTE of a batch's statement: `held (is_held)`, one row. The lock ends with the statement, so it cannot leak
 * and works through a transaction pooler. Everything that the batch reads depends on `(select is_held from held)`.
 * Functions that write are strict and get a null first argument without the lock: PostgreSQL would evaluate a condition
 * beside the call only after the call.
 */
export const held = (sql: Sql, job: JobName) => sql`
  held as materialized (select pg_try_advisory_xact_lock(${LOCK_SPACE}::int, ${JOB_LOCKS[job]}::int) as is_held)`

/** Parts of a step that run side by side, one for each connection of the gate of jobs. */
export const LANES = 2
/** Second keys of lanes begin above those of jobs. */
const LANES_OF_JOB = 1_000

/** The two steps of a job that run in lanes. */
export type LaneStep = 'first' | 'second'

/**
 * `held` for one lane of a step. There is a lock for each pair of a lane of the first step and a lane of the second, and
 * a lane takes those of all its pairs: lanes of one step run side by side, but neither beside a lane of the other step
 * nor beside any other step, in whatever process. Else a step could delete news that the other has just found known.
 */
export const laneHeld = (sql: Sql, job: JobName, step: LaneStep, lane: number) => {
  const pair = (other: number) => (step === 'first' ? lane * LANES + other : other * LANES + lane)
  const [one, two] = [0, 1].map((other) => LANES_OF_JOB * JOB_LOCKS[job] + pair(other))
  return sql`
  held as materialized (
    select pg_try_advisory_xact_lock_shared(${LOCK_SPACE}::int, ${JOB_LOCKS[job]}::int)
           and pg_try_advisory_xact_lock(${LOCK_SPACE}::int, ${one!}::int)
           and pg_try_advisory_xact_lock(${LOCK_SPACE}::int, ${two!}::int) as is_held)`
}
