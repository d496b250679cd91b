/** Facts computed from the metrics: requests, refusals, jobs and tables. */
import type { Metrics } from './metrics.ts'

const REQUESTS = 'broker_http_request_duration_seconds_count'
const SECONDS = 'broker_http_request_duration_seconds_sum'
const JOB_ENDED = 'broker_job_last_success_timestamp_seconds'
const PASSES = 'broker_job_passes_total'

const WANTED = new Set([
  REQUESTS,
  SECONDS,
  JOB_ENDED,
  'process_start_time_seconds',
  'process_resident_memory_bytes',
  'nodejs_eventloop_lag_p99_seconds',
])

/** All metrics of the broker except the buckets of histograms. */
export const isWanted = (name: string): boolean =>
  WANTED.has(name) || (/^(broker_|svc_supplychain_)/.test(name) && !/_bucket$/.test(name))

export interface RouteRequests {
  readonly method: string
  readonly route: string
  readonly answered: number
  /** 4xx: the request was invalid or not allowed. */
  readonly refused: number
  /** 5xx: the broker or its database failed. */
  readonly failed: number
  readonly meanMs: number
}

const MS_PER_SECOND = 1_000

/** Requests since the start of the process: writes first, then the most frequent. */
export function requestsOf(metrics: Metrics): RouteRequests[] {
  const byRoute = new Map<string, RouteRequests & { seconds: number }>()
  for (const { labels, value } of metrics.all(REQUESTS)) {
    const { method = '', route = '', status = '' } = labels
    const key = `${method} ${route}`
    const seconds = metrics.sum(SECONDS, labels) ?? 0
    const known = byRoute.get(key) ?? { method, route, answered: 0, refused: 0, failed: 0, meanMs: 0, seconds: 0 }
    byRoute.set(key, {
      ...known,
      answered: known.answered + (/^[23]/.test(status) ? value : 0),
      refused: known.refused + (status.startsWith('4') ? value : 0),
      failed: known.failed + (status.startsWith('5') ? value : 0),
      seconds: known.seconds + seconds,
    })
  }
  return [...byRoute.values()]
    .map(({ seconds, ...one }) => ({ ...one, meanMs: (seconds * MS_PER_SECOND) / Math.max(totalOf(one), 1) }))
    .sort((a, b) => Number(isWrite(b)) - Number(isWrite(a)) || totalOf(b) - totalOf(a))
}

export const totalOf = ({ answered, refused, failed }: RouteRequests): number => answered + refused + failed
export const isWrite = ({ method }: RouteRequests): boolean => method !== 'GET' && method !== 'HEAD'
export const REQUEST_COUNTER = REQUESTS

export interface JobState {
  readonly job: string
  /** Milliseconds since 1970; any process may have run it. Null if it never ended well. */
  readonly endedAt: number | null
  readonly durationMs: number | null
  readonly passes: number
  /** Runs of this process that failed, by outcome. */
  readonly others: readonly { readonly outcome: string; readonly count: number }[]
  readonly isLate: boolean
}

const HOUR_MS = 3_600_000
/**
 * Three times the longest default interval of a job. No route returns the configured intervals, so a job with a longer
 * one looks late.
 */
const LATE_MS = 3 * HOUR_MS
/** This job runs daily. */
const LATE_MS_BY_JOB: Readonly<Record<string, number>> = { 'version-check': 72 * HOUR_MS }
/** Outcomes that are no failures: another process ran the job, or the next run continues it. */
const FINE = ['done', 'capped', 'skipped']

/** Jobs that ended well or failed, late ones first. */
export function jobsOf(metrics: Metrics, nowMs: number): JobState[] {
  return [...new Set([JOB_ENDED, PASSES].flatMap((name) => metrics.values(name, 'job')))]
    .map((job) => {
      const ended = metrics.sum(JOB_ENDED, { job }) ?? 0
      const endedAt = ended > 0 ? ended * MS_PER_SECOND : null
      const seconds = metrics.sum('broker_job_duration_seconds', { job })
      const outcomes = metrics.values(PASSES, 'outcome').map((outcome) => ({
        outcome,
        count: metrics.sum(PASSES, { job, outcome }) ?? 0,
      }))
      return {
        job,
        endedAt,
        durationMs: seconds === null ? null : seconds * MS_PER_SECOND,
        passes: outcomes.reduce((sum, { count }) => sum + count, 0),
        others: outcomes.filter(({ outcome, count }) => count > 0 && !FINE.includes(outcome)),
        isLate: endedAt === null || nowMs - endedAt > (LATE_MS_BY_JOB[job] ?? LATE_MS),
      }
    })
    .filter(({ endedAt, others }) => endedAt !== null || others.length > 0)
    .sort((a, b) => Number(b.isLate) - Number(a.isLate) || (a.job < b.job ? -1 : 1))
}

export interface TableSize {
  readonly table: string
  readonly bytes: number
  readonly rows: number | null
  readonly deadRows: number | null
}

/** The largest tables of the database. */
export function tablesOf(metrics: Metrics, most: number): TableSize[] {
  return metrics
    .all('broker_db_table_bytes')
    .map(({ labels: { table = '' }, value }) => ({
      table,
      bytes: value,
      rows: metrics.sum('broker_db_table_rows', { table }),
      deadRows: metrics.sum('broker_db_table_dead_rows', { table }),
    }))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, most)
}
