import type { Config } from '../config.ts'
import { startEmbedded } from '../db/embedded/index.ts'
import type { Connection } from '../db/index.ts'
import type { Log } from '../observability/log.ts'
import type { StopSignals } from '../process/stop-signals.ts'

/**
 * What `work` resolves to on the configured database, else on the embedded one, which is started for it and stopped whatever becomes
 * of it. A signal gives the start up.
 * @throws EmbeddedUnavailable, also when the data goes while `work` is under way; Stopped; and what `work` does
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
