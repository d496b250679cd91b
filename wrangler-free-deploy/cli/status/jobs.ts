/** The jobs of the broker, from its metrics: no other route says when they last ended well. */

export interface JobRun {
  readonly name: string
  readonly lastSuccess: Date
}

/** A sample of one label in the text format of Prometheus; names of jobs have no character that is escaped. */
const SAMPLE = /^broker_job_last_success_timestamp_seconds\{job="([^"\\]*)"\} (\S+)$/gm
/** The passes of this process that failed. */
const FAILED = /^broker_job_passes_total\{job="([^"\\]*)",outcome="failed"\} (\d+)$/gm
const MS_PER_SECOND = 1_000

export function jobsOf(metrics: string): JobRun[] {
  return [...metrics.matchAll(SAMPLE)]
    .map(([, name, seconds]) => ({ name: name!, lastSuccess: new Date(Number(seconds) * MS_PER_SECOND) }))
    .filter(({ lastSuccess }) => lastSuccess.getTime() > 0)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The jobs of which passes failed, and none has ended well in any process. */
export function brokenJobs(metrics: string): string[] {
  const ended = new Set(jobsOf(metrics).map(({ name }) => name))
  const failed = [...metrics.matchAll(FAILED)].filter(([, , passes]) => Number(passes) > 0)
  return failed
    .map(([, name]) => name!)
    .filter((name) => !ended.has(name))
    .sort()
}
