import type { Log } from '../../lib/observability/log.ts'

/** A log that passes each line to `write`. */
export const logTo = (write: (level: keyof Log, message: string, fields: object) => void): Log => ({
  debug: (fields, message) => write('debug', message, fields),
  info: (fields, message) => write('info', message, fields),
  warn: (fields, message) => write('warn', message, fields),
  error: (fields, message) => write('error', message, fields),
})

export const noLog = logTo(() => {})
