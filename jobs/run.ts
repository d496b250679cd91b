/**
 * Runs one pass of one job and exits with 0 or 1: `node dist/jobs/run.js <name> [--dry-run]`. Intervals are ignored.
 */
import type { Logger } from 'pino'
import { withDatabase } from '../lib/app/with-database.ts'
import { type Config, loadConfig } from '../lib/config/index.ts'
import { openDatabase } from '../lib/db/index.ts'
import { runProgram } from '../lib/process/program.ts'
import { watchStopSignals } from '../lib/process/stop-signals.ts'
import { migrate } from '../sql/migrate/index.ts'
import { schemaState } from '../sql/migrate/schema-state.ts'
import { migrationSettings } from '../sql/migrate/settings.ts'
import { jobs } from './index.ts'
import type { Job, JobContext } from './job.ts'
import { runPass } from './pass.ts'

const SCHEMA_ANSWER_MS = 15_000
const END_DATABASE_MS = 2_000
/** Gives jobs two connections; those of ingest and reads are never opened. */
const POOL_MAX = 8

/** The requested job and whether to count only, or an error text for wrong arguments. */
function readArguments(args: readonly string[]): { job: Job; isDryRun: boolean } | string {
  const names = args.filter((arg) => arg !== '--dry-run')
  const job = jobs.find(({ name }) => name === names[0])
  if (names.length !== 1) return `expected one job, got ${names.length}`
  return job === undefined ? `unknown job ${JSON.stringify(names[0])}` : { job, isDryRun: names.length < args.length }
}

/** Resolves to the exit code. */
async function run(job: Job, isDryRun: boolean, config: Config, log: Logger): Promise<number> {
  for (const warning of config.warnings) log.warn(warning)
  if (job.everySecs(config) === null) {
    log.info({ job: job.name }, 'the job is turned off')
    return 0
  }
  const signals = watchStopSignals((signal) => log.info({ signal }, 'stopping after this batch'))
  return withDatabase(config, log, signals, async (connection) => {
    // No other process migrates the embedded database.
    if (config.database === null && config.migrateOnStart)
      await signals.race(migrate({ connection, log, ...migrationSettings(config) }))
    const db = openDatabase({
      connection,
      poolMax: POOL_MAX,
      statementTimeoutMs: config.dbStatementTimeoutMs,
      prepare: config.dbPrepare,
      applicationName: 'cluster-telemetry-broker-job',
      log,
    })
    try {
      const state = await schemaState(db, SCHEMA_ANSWER_MS)
      if (state !== 'ready')
        throw new Error(state === 'outdated' ? 'the schema is not that of this release: migrate first' : 'no database')
      const context: JobContext = { config, db, log, signal: signals.aborted }
      if (isDryRun) {
        log.info({ job: job.name, isDryRun, rows: await job.count(context) }, 'rows that a pass would change')
        return 0
      }
      const report = await runPass(job, context)
      log.info({ job: job.name, ...report }, 'job pass')
      return report.outcome === 'aborted' ? 1 : 0
    } finally {
      await db.end(END_DATABASE_MS)
    }
  })
}

const asked = readArguments(process.argv.slice(2))
if (typeof asked === 'string') {
  process.stderr.write(
    `${asked}; usage: run <job> [--dry-run], where <job> is one of ${jobs.map(({ name }) => name).join(', ')}\n`,
  )
  process.exit(1)
}
await runProgram(loadConfig, (config, log) => run(asked.job, asked.isDryRun, config, log), { job: asked.job.name })
