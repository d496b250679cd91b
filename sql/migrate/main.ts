import { pino } from 'pino'
import { loadConfig } from '../../lib/config.ts'
import { type Log, startEmbedded } from '../../lib/db/embedded.ts'
import { migrate } from '../migrate.ts'
import { migrationSettings } from './settings.ts'

/** Migrates the configured database, or the embedded one where none is configured. Sets the exit code. */
export async function main(): Promise<void> {
  let logger = pino()
  try {
    const config = loadConfig(process.env)
    logger = pino({ level: config.logLevel })
    const log: Log = (level, message, fields = {}) => logger[level](fields, message)
    const embedded = config.database ? undefined : await startEmbedded({ dataDir: config.dataDir, log })
    try {
      const connection = config.database ?? embedded!.options
      const result = await migrate({ connection, log, ...migrationSettings(config) })
      log('info', 'migrate: the schema is up to date', result)
    } finally {
      await embedded?.stop()
    }
  } catch (error) {
    logger.error((error as Error).message)
    process.exitCode = 1
  }
}
