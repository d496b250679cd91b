import type { Sql } from '../lib/db/index.ts'

/** First key of every lock of a job. The two-key space is shared with the migrations, which lock under another one. */
const LOCK_SPACE = 0x6a6f_6273

/** Second key. A number stays with its job for ever: processes of two releases must agree on it. */
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
} as const

export type JobName = keyof typeof JOB_LOCKS

/**
 * The first part of a batch's statement: `held (is_held)`, one row. The lock goes with the statement, so none can leak and a
 * transaction pooler is no obstacle. Everything the batch reads hangs on `(select is_held from held)`. A function that writes is strict and has
 * null for its first argument without the lock: a condition beside the call would be looked at only after it.
 */
export const held = (sql: Sql, job: JobName) => sql`
  held as materialized (select pg_try_advisory_xact_lock(${LOCK_SPACE}::int, ${JOB_LOCKS[job]}::int) as is_held)`
