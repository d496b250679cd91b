// Writes the list of jobs that the chart makes CronJobs of; a test compares it with the code.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { jobs } from '../jobs/index.ts'
import { loadConfig } from '../lib/config.ts'

const FILE = new URL('../wrangler-free-deploy/chart/files/jobs.json', import.meta.url)

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** An interval as cron writes it. An `H` stands for a minute or an hour that the chart draws for each installation. */
export function schedule(everySeconds: number): string {
  if (everySeconds === MINUTE) return '* * * * *'
  if (everySeconds === HOUR) return 'H * * * *'
  if (everySeconds === DAY) return 'H H * * *'
  if (everySeconds % MINUTE === 0 && HOUR % everySeconds === 0) return `*/${everySeconds / MINUTE} * * * *`
  if (everySeconds % HOUR === 0 && DAY % everySeconds === 0) return `H */${everySeconds / HOUR} * * *`
  throw new Error(`cron cannot say every ${everySeconds} seconds`)
}

/** Every job with the seconds between its passes by default and the schedule that comes to the same. */
export function chartJobs(): { name: string; everySeconds: number; schedule: string }[] {
  // Without an endpoint, which the chart gives, nobody would be asked for versions.
  const config = loadConfig({ TELEMETRY_ENDPOINT: 'https://version.invalid' })
  return jobs.map((job) => {
    const everySeconds = job.everySecs(config)
    if (everySeconds === null) throw new Error(`${job.name} is off by default: give the chart a value that turns it on`)
    return { name: job.name, everySeconds, schedule: schedule(everySeconds) }
  })
}

/** The file, a line for each job. */
export function jobsFile(): string {
  const line = (job: ReturnType<typeof chartJobs>[number]) =>
    `  { "name": "${job.name}", "everySeconds": ${job.everySeconds}, "schedule": "${job.schedule}" }`
  return `[\n${chartJobs().map(line).join(',\n')}\n]\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(FILE, jobsFile())
