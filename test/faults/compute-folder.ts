/** A process that folds hours and maintains the partitions of days until it is killed: `compute-folder.ts URL`. */
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { computeFold } from '../../jobs/compute-fold.ts'
import { computeRetention } from '../../jobs/compute-retention.ts'
import type { JobContext } from '../../jobs/job.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { openDatabase } from '../../lib/db/index.ts'

const HOURS = 30
const PAUSE_MS = 20

const log = pino({ level: 'warn' })
const connection = process.argv[2]!
const db = openDatabase({
  connection,
  poolMax: 4,
  statementTimeoutMs: 30_000,
  prepare: true,
  applicationName: 'compute-folder',
  log,
})
const context: JobContext = { config: loadConfig({}), db, log, signal: new AbortController().signal }

process.stdout.write('up\n')
for (let hours = HOURS; ; hours = Math.max(1, hours - 1)) {
  const config = { ...context.config, computeHistoryMinuteHours: hours }
  // Errors are expected: another folder may be faster, and the test ends sessions.
  await computeFold.run({ ...context, config }).catch((error: unknown) => log.warn({ err: error }, 'fold'))
  await computeRetention.run(context).catch((error: unknown) => log.warn({ err: error }, 'retention'))
  await delay(PAUSE_MS)
}
