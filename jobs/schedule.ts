/**
 * Runs the jobs inside the server (`JOBS=in-process`). There is no leader: each replica wakes a little before or after
 * a job is due and reads from the database when it last completed anywhere. The first replica runs the job, the others
 * sleep for the remaining time.
 */
import { isNoConnection } from '../lib/db/index.ts'
import type { Metrics } from '../lib/metrics/index.ts'
import { within } from '../lib/time/within.ts'
import { JITTER, type Job, type JobContext } from './job.ts'
import { lastPass, runPass } from './pass.ts'

const MIN_SLEEP_MS = 1_000
/** The longest delay of a timer. A chain that wakes earlier than its jobs are due sleeps again. */
const MAX_SLEEP_MS = 2_147_483_647

export interface ScheduleOptions extends Omit<JobContext, 'signal'> {
  readonly metrics: Metrics
  /** Returns numbers from 0 to 1. */
  readonly random?: () => number
}

export interface Schedule {
  /** Names of the enabled jobs. */
  readonly jobs: readonly string[]
  /** Starts no further batch and waits up to `maxMs` for running ones. Never rejects. */
  stop(maxMs: number): Promise<void>
}

/** Starts the chains. Each sleeps first, then runs its jobs one after the other, whether or not one fails. */
export function startSchedule(chains: readonly (readonly Job[])[], options: ScheduleOptions): Schedule {
  const { config, db, log, metrics, random = Math.random } = options
  const abort = new AbortController()
  const context: JobContext = { config, db, log, signal: abort.signal }
  const awake = new Set<Promise<void>>()

  /**
   * Sets the timer of a chain. Only the end of a run sets it again, so a chain never runs twice at once. The timer does
   * not depend on the clock: jobs go on when that is set back.
   */
  function sleep(chain: readonly Job[], secs: number, jitterSecs: number): void {
    if (abort.signal.aborted) return
    const ms = Math.max(MIN_SLEEP_MS, 1000 * (secs + (2 * random() - 1) * jitterSecs))
    const wake = () => {
      const running = run(chain).finally(() => awake.delete(running))
      awake.add(running)
    }
    setTimeout(wake, Math.min(ms, MAX_SLEEP_MS)).unref()
  }

  /** Never rejects. Does nothing after `stop`. */
  async function run(chain: readonly Job[]): Promise<void> {
    let nextSecs = Number.POSITIVE_INFINITY
    let jitterSecs = 0
    for (const job of chain) {
      if (abort.signal.aborted) return
      const everySecs = job.everySecs(config)!
      const secs = await runIfDue(job, everySecs)
      if (secs >= nextSecs) continue
      nextSecs = secs
      jitterSecs = JITTER * everySecs
    }
    sleep(chain, nextSecs, jitterSecs)
  }

  /** Returns the seconds until the job has to be checked again. Never rejects. */
  async function runIfDue(job: Job, everySecs: number): Promise<number> {
    try {
      const last = await lastPass(db, job.name)
      if (last !== null) setGauges(job, last.finishedAt, last.durationMs)
      const ranAgoSecs = last?.agoSecs ?? everySecs
      // A last pass further in the future is from before the clock of the database was set back.
      if (Math.abs(ranAgoSecs) < everySecs * (1 - JITTER)) return everySecs - Math.max(0, ranAgoSecs)
      const report = await runPass(job, context)
      if (report.finishedAt !== null) setGauges(job, report.finishedAt, report.durationMs)
      metrics.jobPasses.inc({ job: job.name, outcome: report.outcome })
      metrics.jobRows.inc({ job: job.name }, report.rows)
      // Most passes find nothing to do.
      log[report.rows > 0 ? 'info' : 'debug']({ job: job.name, ...report }, 'job pass')
    } catch (err) {
      metrics.jobPasses.inc({ job: job.name, outcome: 'failed' })
      // The pool warns of a database that is gone, and the job runs again.
      log[isNoConnection(err) ? 'warn' : 'error']({ job: job.name, err }, 'the job failed')
    }
    return everySecs
  }

  function setGauges(job: Job, finishedAt: number, durationMs: number): void {
    metrics.jobLastSuccess.set({ job: job.name }, finishedAt)
    metrics.jobDuration.set({ job: job.name }, durationMs / 1000)
  }

  const enabled = chains
    .map((chain) => chain.filter((job) => job.everySecs(config) !== null))
    .filter((chain) => chain.length > 0)
  for (const chain of enabled) {
    const firstSecs = Math.min(...chain.map((job) => job.firstAfterSecs ?? job.everySecs(config)!))
    sleep(chain, firstSecs, JITTER * firstSecs)
  }
  const jobs = enabled.flat().map((job) => job.name)
  log.info({ jobs }, 'jobs scheduled')

  return {
    jobs,
    async stop(maxMs) {
      abort.abort()
      await within(Promise.all(awake), maxMs)
    },
  }
}
