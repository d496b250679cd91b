import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type DestinationStream, type LogFn, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino'
import type { logLevels } from '../config/variables.ts'

/** Where parts of the service write their lines; whoever makes it decides on form and threshold. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Lines are gathered up to this size, or this long, and leave in one write. */
const gatheredChars = 4096
const gatheredMs = 250
/** What a reader that does not read may hold in memory; lines above are dropped and counted. */
const maxPendingChars = 8 * 1024 * 1024
const stallRetryMs = 2
const exitDeadlineMs = 2000
const exitRetryMs = 10

/** Fields that fill a terminal and tell a person nothing. */
const LONG_FIELDS = 'requestId,jobs'

/** Where callers put headers: a header map itself, or under a request. */
const secretPaths = ['', 'headers.', 'req.headers.', 'request.headers.'].flatMap((at) => [
  `${at}authorization`,
  `${at}Authorization`,
])

/** SQLSTATE classes whose message repeats a value: data exceptions, violated constraints, our own `raise`. */
const classesWithValues = new Set(['22', '23', 'P0'])
const maxCauses = 4

/** How lines are made; the tests read theirs made the same way. */
export const lineOptions = {
  base: null,
  timestamp: stdTimeFunctions.isoTime,
  formatters: { level: (level: string) => ({ level }) },
  redact: secretPaths,
  serializers: { err: (error: unknown) => describeError(error) },
  hooks: { logMethod: nameLine },
} satisfies LoggerOptions

/**
 * The log of the process: JSON lines on stdout, or readable ones on a terminal where pino-pretty is installed. Header
 * `authorization` is starred; errors under `err` carry no row values. Lines appear within 250 ms and all of them at `process.exit`;
 * a reader that stalls never blocks the process, it loses lines and a warning says how many.
 */
export function createLog(config: { readonly logLevel: (typeof logLevels)[number] }): Logger {
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
 * Lines on their way to a descriptor. Own code because the buffered destination of pino tears lines that are being written when the
 * process exits, and never returns from its last flush when the reader has gone (sonic-boom 4).
 */
function createOutput(fd: number, onDropped: (lines: number) => void): DestinationStream & { flushSync(): void } {
  let gathered = ''
  let leaving: Buffer = Buffer.alloc(0)
  let timer: NodeJS.Timeout | undefined
  /** How long the reader is given to make room; 0 while it keeps up. */
  let stallMs = 0
  let closed = false
  let dropped = 0

  function write(line: string): void {
    if (closed) return
    if (gathered.length + leaving.length + line.length > maxPendingChars) {
      dropped++
      return
    }
    gathered += line
    if (gathered.length >= gatheredChars && stallMs === 0) flush()
    else timer ??= setTimeout(flush, gatheredMs).unref()
  }

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const before = leaving
    if (writeAll()) stallMs = 0
    else {
      // A pipe takes no more than it holds at once: come back soon while it moves, later when it does not.
      stallMs = leaving === before ? Math.min(stallMs * 2, gatheredMs) : stallRetryMs
      timer = setTimeout(flush, stallMs).unref()
    }
  }

  /** Writes until nothing is left; false when the descriptor takes no more for now. */
  function writeAll(): boolean {
    try {
      for (;;) {
        if (leaving.length === 0) {
          if (dropped > 0) reportDropped()
          if (gathered === '') return true
          leaving = Buffer.from(gathered)
          gathered = ''
        }
        leaving = leaving.subarray(writeSync(fd, leaving))
      }
    } catch (error) {
      closed = (error as NodeJS.ErrnoException).code === 'EPIPE'
      if (!closed) return false
      gathered = ''
      leaving = Buffer.alloc(0)
      return true
    }
  }

  function reportDropped(): void {
    const lines = dropped
    dropped = 0
    onDropped(lines)
  }

  /** Waits for the reader, but not for ever. */
  function flushSync(): void {
    const sleeper = new Int32Array(new SharedArrayBuffer(4))
    const end = Date.now() + exitDeadlineMs
    while (!writeAll() && Date.now() < end) Atomics.wait(sleeper, 0, 0, exitRetryMs)
  }

  process.once('exit', flushSync)
  return { write, flushSync }
}

/**
 * An error as it may be logged: the named fields only, for others hold rows and parameters. Of a database error about a value,
 * the message too stays out.
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
    cause: error.cause instanceof Error && depth < maxCauses ? describeError(error.cause, depth + 1) : undefined,
  }
}

function repeatsValue(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== 'PostgresError') return false
  return classesWithValues.has(String((error as Error & { code?: string }).code).slice(0, 2))
}

/** Without a message of its own a line would take that of its error. */
function nameLine(this: Logger, args: Parameters<LogFn>, method: LogFn): void {
  const [subject] = args as unknown[]
  if (args.length === 1 && repeatsValue((subject as { err?: unknown } | null)?.err ?? subject))
    method.call(this, subject, 'database error')
  else method.apply(this, args)
}
