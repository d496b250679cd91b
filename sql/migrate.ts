/**
 * Migrates the configured database, or the embedded one where none is configured: `node dist/sql/migrate.js`, exit code 0 or 1.
 */
import { pino } from 'pino'
import { loadConfig } from '../lib/config.ts'
import { environment } from '../lib/env-file.ts'
import { watchStopSignals } from '../lib/stop-signals.ts'
import { withDatabase } from '../lib/with-database.ts'
import { migrate } from './migrate/index.ts'
import { migrationSettings } from './migrate/settings.ts'

let log = pino()
try {
  const config = loadConfig(environment())
  log = pino({ level: config.logLevel })
  const signals = watchStopSignals((signal) => log.info({ signal }, 'stopping'))
  await withDatabase(config, log, signals, async (connection) => {
    const result = await signals.race(migrate({ connection, log, ...migrationSettings(config) }))
    log.info(result, 'migrate: the schema is up to date')
  })
} catch (error) {
  log.error((error as Error).message)
  process.exit(1) // what a signal left to itself would go on
}
