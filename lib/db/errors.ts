/** The two ways a database can be unable to answer. Neither carries SQL or parameters: both may reach a log or a client. */

/** SQLSTATE of a statement the server gave up on although the connection is sound. */
const BUSY = new Set([
  '57014', // query_canceled: statement timeout or cancel
  '55P03', // lock_not_available
  '40P01', // deadlock_detected
  '40001', // serialization_failure
])

/** SQLSTATE outside class 08, driver and socket codes that mean: no usable connection. */
const UNAVAILABLE = new Set([
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '53300', // too_many_connections
  '25006', // read_only_sql_transaction: the server behind this connection is no longer the primary
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
])

/** The busy answers worth another attempt at once; the others have already cost a full timeout. */
const TRANSIENT = new Set(['40P01', '40001'])

/** The server cancelled the statement. Answered 503 with `Retry-After: 5`. */
export class DatabaseBusy extends Error {
  override readonly name = 'DatabaseBusy'
  readonly retryAfterSeconds = 5
  /** SQLSTATE. */
  readonly code: string

  constructor(databaseMessage: string, code: string) {
    super(`database busy: ${databaseMessage}`)
    this.code = code
  }
}

/** No connection, or no room at the gate. Answered 503 with `Retry-After: 1`. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly retryAfterSeconds = 1
  /** SQLSTATE, driver or socket code; `GATE_FULL`, `GATE_TIMEOUT`, `POOL_REPLACED`, `PROBE_TIMEOUT`, `DATABASE_ENDED` are ours. */
  readonly code: string

  constructor(reason: string, code: string) {
    super(`database unavailable: ${reason}`)
    this.code = code
  }
}

function text(error: object, field: 'code' | 'syscall' | 'message'): string {
  const value = (error as Record<string, unknown>)[field]
  return typeof value === 'string' ? value : ''
}

/** A driver error as DatabaseBusy or DatabaseUnavailable; any other error is returned unchanged. */
export function classify(error: unknown): Error {
  if (error === null || typeof error !== 'object') return new Error(String(error))
  if (error instanceof DatabaseBusy || error instanceof DatabaseUnavailable) return error
  const code = text(error, 'code')
  if (BUSY.has(code)) return new DatabaseBusy(text(error, 'message'), code)
  if (isConnectionCode(code) || text(error, 'syscall') !== '') return new DatabaseUnavailable(text(error, 'message'), code)
  return error as Error
}

// Sockets and resolvers name the system call that failed; streams and TLS name their own codes.
function isConnectionCode(code: string): boolean {
  return (
    UNAVAILABLE.has(code) ||
    (code.length === 5 && code.startsWith('08')) ||
    /^(ECONN|EPIPE|ETIMEDOUT|ERR_STREAM_|ERR_SOCKET_|ERR_SSL_)/.test(code)
  )
}

/** May a statement that failed so be tried again soon: a deadlock, a serialization failure, or a connection that was lost. */
export function isTransient(error: Error): boolean {
  if (error instanceof DatabaseBusy) return TRANSIENT.has(error.code)
  // A connect timeout has already taken seconds; a second one would double the wait for nothing.
  return error instanceof DatabaseUnavailable && error.code !== 'CONNECT_TIMEOUT'
}
