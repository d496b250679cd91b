import type { Logger } from 'pino'
import type { LogLevel } from '../observability/log.ts'
import { runProgram } from './program.ts'
import { Stopped, type StopSignals, watchStopSignals } from './stop-signals.ts'

/** Less than the grace period of a pod (30 s), even if something hangs. */
const SHUTDOWN_MS = 19_000

interface ServerConfig {
  readonly logLevel: LogLevel
  readonly warnings: readonly string[]
}

/**
 * Runs a server as a program. `serve` resolves after a stop signal, once running work has ended; a signal during the
 * start makes it reject with `Stopped`. Exit code: 0 in both cases, 1 when it fails or takes too long to stop.
 */
export function runServer<Config extends ServerConfig>(
  load: (env: NodeJS.ProcessEnv) => Config,
  redacted: (config: Config) => { tokens?: unknown; token?: unknown },
  serve: (config: Config, log: Logger, signals: StopSignals) => Promise<void>,
): Promise<never> {
  return runProgram(load, async (config, log) => {
    const signals = watchStopSignals((signal) => {
      log.info({ signal }, 'stopping')
      setTimeout(() => process.exit(1), SHUTDOWN_MS).unref()
    })
    const printed = redacted(config)
    const { tokens, token } = printed
    log.info({ node: process.version, tokens, token }, 'starting')
    log.debug({ config: printed }, 'configuration')
    for (const warning of config.warnings) log.warn(warning)
    await serve(config, log, signals).catch((error) => {
      if (!(error instanceof Stopped)) throw error
    })
    log.info('stopped')
    return 0
  })
}
