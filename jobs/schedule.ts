/**
 * The jobs inside the server (`JOBS=in-process`). No replica leads: each wakes a little before or after a job is due and asks the
 * database when it last ran to its end anywhere. Who comes first runs it, the others sleep for what remains.
 */
import { Cron } from 'croner'
import type { Metrics } from '../lib/observability/metrics.ts'
import { within } from '../lib/time/within.ts'
import { JITTER, type Job, type JobContext } from './job.ts'
import { lastPass, runPass } from './pass.ts'

const MIN_SLEEP_MS = 1_000

export interface ScheduleOptions extends Omit<JobContext, 'signal'> {
  readonly metrics: Metrics
  /** From 0 to 1. */
  readonly random?: () => number
}

export interface Schedule {
  /** Names of the jobs that are not turned off. */
  readonly jobs: readonly string[]
  /** Starts no further batch and waits up to `maxMs` for those that run. Never rejects. */
  stop(maxMs: number): Promise<void>
}

/** Starts the chains. Every chain sleeps first; its jobs run one after the other, and one that fails keeps none from running. */
export function startSchedule(chains: readonly (readonly Job[])[], options: ScheduleOptions): Schedule {
  const { config, db, log, metrics, random = Math.random } = options
  const abort = new AbortController()
  const context: JobContext = { config, db, log, signal: abort.signal }
  const awake = new Set<Promise<void>>()

  /** Sets the one timer of a chain. It is set again only when the chain has run, so a chain never overtakes itself. */
  function sleep(chain: readonly Job[], secs: number, jitterSecs: number): void {
    if (abort.signal.aborted) return
    const ms = Math.max(MIN_SLEEP_MS, 1000 * (secs + (2 * random() - 1) * jitterSecs))
    // The library counts whole seconds, and never fires for a time that is over.
    const at = new Date(Math.ceil((Date.now() + ms) / 1000) * 1000)
    const wake = () => {
      const turn = run(chain).finally(() => awake.delete(turn))
      awake.add(turn)
    }
    const onFault = (err: unknown) => log.error({ err }, 'a timer of jobs failed')
    new Cron(at, { timezone: 'UTC', protect: true, unref: true, allowPast: true, catch: onFault }, wake)
  }

  /** Never rejects. A chain that wakes after the end does nothing. */
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

  /** Seconds until the job is to be looked at again. Never rejects. */
  async function runIfDue(job: Job, everySecs: number): Promise<number> {
    try {
      const last = await lastPass(db, job.name)
      if (last !== null) show(job, last.finishedAt, last.durationMs)
      const ranAgoSecs = Math.max(0, last?.agoSecs ?? everySecs)
      if (ranAgoSecs < everySecs * (1 - JITTER)) return everySecs - ranAgoSecs
      const report = await runPass(job, context)
      if (report.finishedAt !== null) show(job, report.finishedAt, report.durationMs)
      metrics.jobPasses.inc({ job: job.name, outcome: report.outcome })
      metrics.jobRows.inc({ job: job.name }, report.rows)
      // Most passes find nothing to do.
      log[report.rows > 0 ? 'info' : 'debug']({ job: job.name, ...report }, 'job pass')
    } catch (err) {
      metrics.jobPasses.inc({ job: job.name, outcome: 'failed' })
      log.error({ job: job.name, err }, 'the job failed')
    }
    return everySecs
  }

  function show(job: Job, finishedAt: number, durationMs: number): void {
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
