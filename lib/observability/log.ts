import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type DestinationStream, type LogFn, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino'

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** The log as parts of the service see it. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Lines are buffered up to this size or this long, then written at once. */
const MAX_BUFFERED_CHARS = 4096
const MAX_BUFFERED_MS = 250
/** Memory for lines while stdout is not read; further lines are dropped and counted. */
const MAX_PENDING_CHARS = 8 * 1024 * 1024
const STALL_RETRY_MS = 2
const EXIT_DEADLINE_MS = 2000
const EXIT_RETRY_MS = 10

/** Fields that a terminal does not show, since they are long and of little use there. */
const LONG_FIELDS = 'requestId,jobs'

/** Paths of the authorization header in logged objects. */
const SECRET_PATHS = ['', 'headers.', 'req.headers.', 'request.headers.'].flatMap((at) => [
  `${at}authorization`,
  `${at}Authorization`,
])

/** SQLSTATE classes whose messages repeat values: data exceptions, violated constraints, our own `raise`. */
const CLASSES_WITH_VALUES = new Set(['22', '23', 'P0'])
const MAX_CAUSES = 4

/** The options of pino, shared with the tests. */
export const lineOptions = {
  base: null,
  timestamp: stdTimeFunctions.isoTime,
  formatters: { level: (level: string) => ({ level }) },
  redact: SECRET_PATHS,
  serializers: { err: (error: unknown) => describeError(error) },
  hooks: { logMethod: withSafeMessage },
} satisfies LoggerOptions

/**
 * Creates the log of the process: JSON lines on stdout, or readable ones on a terminal if pino-pretty is installed. The
 * header `authorization` is censored; errors under `err` contain no row values. Lines appear within 250 ms and all of
 * them at `process.exit`. If stdout is not read the process does not block: lines are dropped, and a warning says how
 * many.
 */
export function createLog(config: { readonly logLevel: LogLevel }): Logger {
  const settings = { ...lineOptions, level: config.logLevel }
  const pretty = process.stdout.isTTY ? findPretty() : null
  if (pretty)
    return pino(settings, pretty({ sync: true, singleLine: true, ignore: LONG_FIELDS, translateTime: 'SYS:HH:MM:ss' }))
  const log: Logger = pino(
    settings,
    createOutput(process.stdout.fd, (lines) => log.warn({ lines }, 'log lines were dropped: stdout is not read')),
  )
  return log
}

/** pino-pretty is an optional package: null where it is not installed. */
function findPretty(): ((options: object) => DestinationStream) | null {
  try {
    return createRequire(import.meta.url)('pino-pretty')
  } catch {
    return null
  }
}

/**
 * Writes lines to a file descriptor. Pino's buffered destination (sonic-boom 4) is not used: it tears lines that are
 * being written when the process exits, and never returns from its last flush when the reader has gone.
 */
function createOutput(fd: number, onDropped: (lines: number) => void): DestinationStream & { flushSync(): void } {
  let buffered = ''
  let unwritten: Buffer = Buffer.alloc(0)
  let timer: NodeJS.Timeout | undefined
  /** Pause until the next attempt; 0 while the reader keeps up. */
  let stallMs = 0
  let closed = false
  let dropped = 0

  function write(line: string): void {
    if (closed) return
    if (buffered.length + unwritten.length + line.length > MAX_PENDING_CHARS) {
      dropped++
      return
    }
    buffered += line
    if (buffered.length >= MAX_BUFFERED_CHARS && stallMs === 0) flush()
    else timer ??= setTimeout(flush, MAX_BUFFERED_MS).unref()
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const before = unwritten
    if (writeAll()) stallMs = 0
    else {
      // A pipe accepts only what it has room for. Retry soon while it makes progress, later while it does not.
      stallMs = unwritten === before ? Math.min(stallMs * 2, MAX_BUFFERED_MS) : STALL_RETRY_MS
      timer = setTimeout(flush, stallMs).unref()
    }
  }

  /** Writes everything; false when the descriptor accepts no more for now. */
  function writeAll(): boolean {
    try {
      for (;;) {
        if (unwritten.length === 0) {
          if (dropped > 0) reportDropped()
          if (buffered === '') return true
          unwritten = Buffer.from(buffered)
          buffered = ''
        }
        unwritten = unwritten.subarray(writeSync(fd, unwritten))
      }
    } catch (error) {
      closed = (error as NodeJS.ErrnoException).code === 'EPIPE'
      if (!closed) return false
      buffered = ''
      unwritten = Buffer.alloc(0)
      return true
    }
  }

  function reportDropped(): void {
    const lines = dropped
    dropped = 0
    onDropped(lines)
  }

  /** Waits for the reader up to a deadline. */
  function flushSync(): void {
    const sleeper = new Int32Array(new SharedArrayBuffer(4))
    const end = Date.now() + EXIT_DEADLINE_MS
    while (!writeAll() && Date.now() < end) Atomics.wait(sleeper, 0, 0, EXIT_RETRY_MS)
  }

  process.once('exit', flushSync)
  return { write, flushSync }
}

/**
 * Returns the loggable fields of an error; others contain rows and parameters. Messages of database errors that repeat
 * a value are left out, too.
 */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return error
  const { code, severity, constraint_name, table_name, routine } = error as Error & Record<string, string | undefined>
  const frames = error.stack?.split('\n').filter((line) => line.startsWith('    at '))
  return {
    type: error.name,
    message: repeatsValue(error) ? undefined : error.message,
    code,
    severity,
    constraint_name,
    table_name,
    routine,
    stack: frames?.join('\n'),
    cause: error.cause instanceof Error && depth < MAX_CAUSES ? describeError(error.cause, depth + 1) : undefined,
  }
}

/** The message of an error, or the code of a database error whose message repeats a value. */
export function safeMessage(error: unknown): string {
  if (repeatsValue(error)) return `database error ${(error as { code?: string }).code}`
  return error instanceof Error ? error.message : String(error)
}

function repeatsValue(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== 'PostgresError') return false
  return CLASSES_WITH_VALUES.has(String((error as Error & { code?: string }).code).slice(0, 2))
}

/** Pino uses the error's message for lines without one: replace it if it repeats a value. */
function withSafeMessage(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [subject] = args as unknown[]
  if (args.length === 1 && repeatsValue((subject as { err?: unknown } | null)?.err ?? subject))
    method.call(this, subject, 'database error')
  else method.apply(this, args)
}
