import type { Config } from '../config/index.ts'
import { startEmbedded } from '../db/embedded/index.ts'
import type { Connection } from '../db/index.ts'
import type { Log } from '../observability/log.ts'
import type { StopSignals } from '../process/stop-signals.ts'

/**
 * Runs `work` on the configured database. Without one it starts the embedded database for it and stops it afterwards; a
 * stop signal ends the start.
 * @throws EmbeddedUnavailable, also when the data folder disappears during `work`; Stopped; and whatever `work` throws
 */
export async function withDatabase<T>(
  config: Config,
  log: Log,
  signals: StopSignals,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  if (config.database !== null) return work(config.database)
  const embedded = await startEmbedded({ dataDir: config.dataDir, log, signal: signals.aborted })
  try {
    return await Promise.race([work(embedded.options), embedded.gone])
  } finally {
    await embedded.stop().catch((error) => log.warn({ err: error }, 'the embedded database did not stop'))
  }
}
