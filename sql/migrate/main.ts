import { pino } from 'pino'
import { loadConfig } from '../../lib/config.ts'
import { type Log, startEmbedded } from '../../lib/db/embedded.ts'
import { environment } from '../../lib/env-file.ts'
import { Stopped, watchStopSignals } from '../../lib/stop-signals.ts'
import { migrate } from '../migrate.ts'
import { migrationSettings } from './settings.ts'

/** Migrates the configured database, or the embedded one where none is configured. Sets the exit code. */
export async function main(): Promise<void> {
  let logger = pino()
  try {
    const config = loadConfig(environment())
    logger = pino({ level: config.logLevel })
    const log: Log = (level, message, fields = {}) => logger[level](fields, message)
    const signals = watchStopSignals((signal) => log('info', 'stopping', { signal }))
    const embedded = config.database ? undefined : await startEmbedded({ dataDir: config.dataDir, log, signal: signals.aborted })
    try {
      const connection = config.database ?? embedded!.options
      const result = await signals.race(migrate({ connection, log, ...migrationSettings(config) }))
      log('info', 'migrate: the schema is up to date', result)
    } finally {
      await embedded?.stop()
    }
  } catch (error) {
    logger.error((error as Error).message)
    if (error instanceof Stopped) process.exit(1) // what was left to itself would go on
    process.exitCode = 1
  }
}
