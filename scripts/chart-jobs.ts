// Writes the list of jobs that the chart runs as CronJobs. A test compares it with the code.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { jobs } from '../jobs/index.ts'
import { loadConfig } from '../lib/config/index.ts'

const FILE = new URL('../wrangler-free-deploy/chart/files/jobs.json', import.meta.url)

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** An interval in cron syntax. `H` stands for a minute or an hour that the chart draws for each installation. */
export function schedule(everySeconds: number): string {
  if (everySeconds <= MINUTE) return '* * * * *'
  if (everySeconds === HOUR) return 'H * * * *'
  if (everySeconds === DAY) return 'H H * * *'
  if (everySeconds % MINUTE === 0 && HOUR % everySeconds === 0) return `*/${everySeconds / MINUTE} * * * *`
  if (everySeconds % HOUR === 0 && DAY % everySeconds === 0) return `H */${everySeconds / HOUR} * * *`
  throw new Error(`cron has no syntax for every ${everySeconds} seconds`)
}

/** All jobs, with the default seconds between passes and the equivalent schedule. */
export function chartJobs(): { name: string; everySeconds: number; schedule: string }[] {
  // The version check is off without an endpoint; the chart sets one.
  const config = loadConfig({ TELEMETRY_ENDPOINT: 'https://version.invalid' })
  return jobs.map((job) => {
    const everySeconds = job.everySecs(config)
    if (everySeconds === null) throw new Error(`${job.name} is off by default: give the chart a value that turns it on`)
    return { name: job.name, everySeconds, schedule: schedule(everySeconds) }
  })
}

/** The text of the file, one line for each job. */
export function jobsFile(): string {
  const line = (job: ReturnType<typeof chartJobs>[number]) =>
    `  { "name": "${job.name}", "everySeconds": ${job.everySeconds}, "schedule": "${job.schedule}" }`
  return `[\n${chartJobs().map(line).join(',\n')}\n]\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(FILE, jobsFile())
