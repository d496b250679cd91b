/**
 * Migrates the configured database, or the embedded one if none is configured: `node dist/sql/migrate.js`. The exit
 * code is 0 or 1.
 */

import { withDatabase } from '../lib/app/with-database.ts'
import { loadConfig } from '../lib/config/index.ts'
import { runProgram } from '../lib/process/program.ts'
import { watchStopSignals } from '../lib/process/stop-signals.ts'
import { migrate } from './migrate/index.ts'
import { migrationSettings } from './migrate/settings.ts'

await runProgram(loadConfig, async (config, log) => {
  const signals = watchStopSignals((signal) => log.info({ signal }, 'stopping'))
  await withDatabase(config, log, signals, async (connection) => {
    const result = await signals.race(migrate({ connection, log, ...migrationSettings(config) }))
    log.info(result, 'migrate: the schema is up to date')
  })
  return 0
})
