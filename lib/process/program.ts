import type { Logger } from 'pino'
import { environment } from '../config/env-file.ts'
import { ConfigError } from '../errors.ts'
import { createLog, type LogLevel } from '../observability/log.ts'

/**
 * Ends the process with the exit code that `work` resolves to, or with 1 when `work` or `load` throws. The error is
 * logged with `fields`; before the log exists it goes to stderr.
 */
export async function runProgram<Config extends { readonly logLevel: LogLevel }>(
  load: (env: NodeJS.ProcessEnv) => Config,
  work: (config: Config, log: Logger) => Promise<number>,
  fields: object = {},
): Promise<never> {
  let tell = (error: unknown): void =>
    void process.stderr.write(`${error instanceof ConfigError ? error.message : error}\n`)
  try {
    const config = load(environment())
    const log = createLog(config)
    tell = (err) => {
      // The reader set the environment: a stack trace does not help.
      if (err instanceof ConfigError) log.fatal(fields, err.message)
      else log.fatal({ ...fields, err }, err instanceof Error ? err.message : 'the program failed')
    }
    process.exit(await work(config, log))
  } catch (error) {
    tell(error)
    process.exit(1)
  }
}
