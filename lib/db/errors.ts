/** The ways a database can be unable to answer. None carries SQL or parameters: all may reach a log or a client. */
import { causeOf, isSqlState } from './causes.ts'

/** SQLSTATE of a statement the server gave up on although the connection is sound. */
const BUSY = new Set([
  '57014', // query_canceled: statement timeout or cancel
  '55P03', // lock_not_available
  '40P01', // deadlock_detected
  '40001', // serialization_failure
])

/** SQLSTATE outside class 08, driver and socket codes that mean: not by this connection. */
const UNAVAILABLE = new Set([
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '57P04', // database_dropped
  '57P05', // idle_session_timeout
  '25P03', // idle_in_transaction_session_timeout
  '25P04', // transaction_timeout
  '53300', // too_many_connections
  '25006', // read_only_sql_transaction: the server behind this connection is no longer the primary
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
])

/**
 * SQLSTATE, or the class it begins with, of a statement that is in order and refused all the same: the server or whoever keeps it has to
 * do something first. Not among them are the limits of the server's program (54), which no keeper moves, and internal errors
 * (XX000), which a statement of ours may well have brought about.
 */
const REFUSED = new Set([
  '28', // invalid_authorization_specification
  '3D', // invalid_catalog_name: the database is not there
  '42501', // insufficient_privilege
  '53', // insufficient_resources: disk, memory, a configured limit
  '55', // object_not_in_prerequisite_state, object_in_use: the object, not the statement
  '57', // operator_intervention
  '58', // system_error: input and output, files that are gone
  'F0', // config_file_error
  'XX001', // data_corrupted
  'XX002', // index_corrupted
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
  readonly retryAfterSeconds: number = 1
  /** SQLSTATE, driver or socket code; `GATE_FULL`, `GATE_TIMEOUT`, `POOL_REPLACED`, `PROBE_TIMEOUT`, `DATABASE_ENDED` are ours. */
  readonly code: string

  constructor(reason: string, code: string) {
    super(`database unavailable: ${reason}`)
    this.code = code
  }
}

/**
 * The server answered, on a connection that is sound, that it cannot do what it was asked until its keeper has mended something: a full
 * disk, a missing privilege. Answered 503 with `Retry-After: 5`. The message is ours, since the server's may repeat anything.
 */
export class DatabaseRefused extends DatabaseUnavailable {
  override readonly retryAfterSeconds: number = 5

  constructor(code: string) {
    super(`${causeOf(code).cause} (${code})`, code)
  }
}

function text(error: object, field: 'code' | 'severity' | 'syscall' | 'message'): string {
  const value = (error as Record<string, unknown>)[field]
  return typeof value === 'string' ? value : ''
}

/** A driver error as DatabaseBusy, DatabaseUnavailable or DatabaseRefused; any other error is returned unchanged. */
export function classify(error: unknown): Error {
  if (error === null || typeof error !== 'object') return new Error(String(error))
  if (error instanceof DatabaseBusy || error instanceof DatabaseUnavailable) return error
  // A connection that several addresses refused says why on its parts.
  const told: object = error instanceof AggregateError ? (error.errors[0] ?? error) : error
  const code = text(told, 'code')
  const message = text(told, 'message')
  if (isSessionOver(told)) return new DatabaseUnavailable(message, code)
  if (BUSY.has(code)) return new DatabaseBusy(message, code)
  if (isConnectionCode(code) || text(told, 'syscall') !== '') return new DatabaseUnavailable(message, code)
  if (code.length === 5 && (REFUSED.has(code) || REFUSED.has(code.slice(0, 2)))) return new DatabaseRefused(code)
  return error as Error
}

/** The server let nobody in, or ended the session: whatever its code, this is no fault of a statement, of which all are errors only. */
function isSessionOver(error: object): boolean {
  const severity = text(error, 'severity')
  return severity === 'FATAL' || severity === 'PANIC'
}

// Sockets and resolvers name the system call that failed; streams and TLS name their own codes.
function isConnectionCode(code: string): boolean {
  return (
    UNAVAILABLE.has(code) ||
    (code.length === 5 && code.startsWith('08')) ||
    /^(ECONN|EPIPE|ETIMEDOUT|ERR_STREAM_|ERR_SOCKET_|ERR_SSL_)/.test(code)
  )
}

/** Of an error that `classify` gave: was there no connection, or was it lost. What the server refuses leaves a connection sound. */
export function isNoConnection(error: unknown): error is DatabaseUnavailable {
  return error instanceof DatabaseUnavailable && !(error instanceof DatabaseRefused)
}

// Worth another attempt at once, of what has a SQLSTATE: the connection was lost, or there may be another server, or room in a moment. A
// password, a database or a place on a disk does not turn up within milliseconds.
const isPassing = (code: string) => /^(08...|25006|25P03|53300|57P0[1235])$/.test(code)

/** May a statement that failed so be tried again soon: a deadlock, a serialization failure, or a connection that was lost. */
export function isTransient(error: Error): boolean {
  if (error instanceof DatabaseBusy) return TRANSIENT.has(error.code)
  if (!(error instanceof DatabaseUnavailable)) return false
  // A connect timeout has already taken seconds; a second one would double the wait for nothing.
  return isSqlState(error.code) ? isPassing(error.code) : error.code !== 'CONNECT_TIMEOUT'
}
