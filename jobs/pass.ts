/** Runs one pass of one job; `job_run` records it for every process. */
import { type Database, DatabaseBusy } from '../lib/db/index.ts'
import type { Job, JobContext, Pass } from './job.ts'
import type { JobName } from './locks.ts'

export interface Report extends Pass {
  readonly durationMs: number
  /** Unix time in seconds by the database's clock; null if the pass did not complete. */
  readonly finishedAt: number | null
}

/** The last completed pass, in any process. */
export interface LastPass {
  readonly finishedAt: number
  /** Seconds since, by the database's clock. */
  readonly agoSecs: number
  readonly durationMs: number
}

/** SQLSTATE lock_not_available and deadlock_detected. */
const LOCKS = ['55P03', '40P01']

/** Runs the job and records the pass if it completed. Rejects as the job does, except for lock timeouts. */
export async function runPass(job: Job, context: JobContext): Promise<Report> {
  const startedAt = performance.now()
  const pass = await job.run(context).catch((error) => heldUp(error, job, context))
  const durationMs = Math.round(performance.now() - startedAt)
  const isComplete = pass.outcome === 'done' || pass.outcome === 'capped'
  return {
    ...pass,
    durationMs,
    finishedAt: isComplete ? await record(context.db, job.name, pass.rows, durationMs) : null,
  }
}

function heldUp(error: unknown, { name }: Job, { log }: JobContext): Pass {
  if (!(error instanceof DatabaseBusy && LOCKS.includes(error.code))) throw error
  log.warn({ job: name, err: error }, 'another session held a lock for too long: the next pass does the rest')
  return { outcome: 'held up', rows: 0, batches: 0 }
}

async function record(db: Database, job: JobName, rows: number, durationMs: number): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ finished_at: number }[]>`
  insert into job_run (job, finished_at, duration_ms, rows)
  values (${job}, now() at time zone 'utc', ${durationMs}, ${rows})
  on conflict (job) do update set
    finished_at = excluded.finished_at,
    duration_ms = excluded.duration_ms,
    rows        = excluded.rows
  returning extract(epoch from finished_at)::float8 as finished_at`,
  )
  return row!.finished_at
}

/** Null if the job never completed on this database. */
export async function lastPass(db: Database, job: JobName): Promise<LastPass | null> {
  const [row] = await db.job(
    (sql) => sql<LastPass[]>`
  select extract(epoch from finished_at)::float8                            as "finishedAt",
         extract(epoch from now() at time zone 'utc' - finished_at)::float8 as "agoSecs",
         duration_ms::float8                                                as "durationMs"
  from job_run
  where job = ${job}`,
  )
  return row ?? null
}
