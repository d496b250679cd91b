/** The ways a database fails to answer. No error carries SQL or parameters: each may reach a log or a client. */

/** SQLSTATEs of statements that the server gave up on a sound connection. */
const BUSY = new Set([
  '57014', // query_canceled: statement timeout or cancel
  '55P03', // lock_not_available
  '40P01', // deadlock_detected
  '40001', // serialization_failure
])

/** Codes outside SQLSTATE class 08 that mean the connection cannot be used: SQLSTATE, driver and socket codes. */
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
 * SQLSTATEs, or their classes, of correct statements that the server refuses until an operator changes something. Left
 * out: the limits of the server program (54), which no operator can change, and internal errors (XX000), which a
 * statement of this service may have caused.
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

/** Busy codes that are retried at once. The others have already cost a full timeout. */
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
  /**
   * SQLSTATE, driver or socket code, or one of this service: `GATE_FULL`, `GATE_TIMEOUT`, `BATCHER_FULL`,
   * `POOL_REPLACED`, `PROBE_TIMEOUT`, `TLS_FAILED`, `DATABASE_ENDED`.
   */
  readonly code: string

  constructor(reason: string, code: string) {
    super(`database unavailable: ${reason}`)
    this.code = code
  }
}

/**
 * The server refused a correct statement on a sound connection until an operator changes something, such as a full disk
 * or a missing privilege. Answered 503 with `Retry-After: 5`. The message is written here: the server's may repeat
 * values.
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

/**
 * Turns a driver error into DatabaseBusy, DatabaseUnavailable or DatabaseRefused; returns any other error unchanged.
 */
export function classify(error: unknown): Error {
  if (error === null || typeof error !== 'object') return new Error(String(error))
  if (error instanceof DatabaseBusy || error instanceof DatabaseUnavailable) return error
  // After a refusal by several addresses, the reasons are on the parts of the error.
  const reason: object = error instanceof AggregateError ? (error.errors[0] ?? error) : error
  const code = text(reason, 'code')
  const message = text(reason, 'message')
  if (isSessionOver(reason)) return new DatabaseUnavailable(message, code)
  if (BUSY.has(code)) return new DatabaseBusy(message, code)
  if (isConnectionCode(code) || text(reason, 'syscall') !== '') return new DatabaseUnavailable(message, code)
  if (code.length === 5 && (REFUSED.has(code) || REFUSED.has(code.slice(0, 2)))) return new DatabaseRefused(code)
  return error as Error
}

/** Whether the server refused or ended the session. A fault of a statement never has these severities. */
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

/**
 * Whether there was no connection or it was lost; takes an error from `classify`. A refusal leaves the connection
 * sound.
 */
export function isNoConnection(error: unknown): error is DatabaseUnavailable {
  return error instanceof DatabaseUnavailable && !(error instanceof DatabaseRefused)
}

// SQLSTATEs worth another attempt at once: the connection was lost, another server may have taken over, or a slot may
// be free in a moment. A password, a database or disk space does not appear within milliseconds.
const isPassing = (code: string) => /^(08...|25006|25P03|53300|57P0[1235])$/.test(code)

/** Whether to try the statement again soon: after a deadlock, a serialization failure or a lost connection. */
export function isTransient(error: Error): boolean {
  if (error instanceof DatabaseBusy) return TRANSIENT.has(error.code)
  if (!(error instanceof DatabaseUnavailable)) return false
  // A connect timeout has already taken seconds; a second one would double the wait for nothing.
  return isSqlState(error.code) ? isPassing(error.code) : error.code !== 'CONNECT_TIMEOUT'
}

const outcomeUnknown = new WeakSet<Error>()

/**
 * Marks the error of a statement whose outcome is unknown: the connection was lost after the statement was sent and
 * before its answer arrived, so the server may have carried it out.
 */
export function markOutcomeUnknown(error: Error): Error {
  outcomeUnknown.add(error)
  return error
}

/** Whether the server may have carried out the failed statement, or an earlier attempt of it. */
export const isOutcomeUnknown = (error: unknown) => error instanceof Error && outcomeUnknown.has(error)

/** A plain-words cause and remedy of an error code, for the log and for a start that fails. */
export interface Cause {
  readonly cause: string
  readonly remedy: string
}

const SESSION_ENDED: Cause = { cause: 'the server ended the session', remedy: 'see its log' }
const UNREACHABLE: Cause = {
  cause: 'the server cannot be reached',
  remedy: 'see that it runs and that DATABASE_URL leads to it',
}

/** By SQLSTATE, or by the class it begins with (PostgreSQL documentation, appendix A). */
const CAUSES: Readonly<Record<string, Cause>> = {
  '25006': {
    cause: 'the server is read-only',
    remedy: 'let DATABASE_URL lead to the primary, or end its read-only mode',
  },
  '25P': { cause: 'the server ended an idle session', remedy: 'raise its timeouts for the role' },
  '28': { cause: 'the role may not log in', remedy: 'check the role, its right to log in and pg_hba.conf' },
  '28P01': { cause: 'the password is wrong', remedy: 'set it for the role, or correct DATABASE_URL' },
  '3D': { cause: 'the database does not exist', remedy: 'create or restore it, or correct DATABASE_URL' },
  '42501': { cause: 'the role lacks a privilege', remedy: 'grant it; the log of the server names the object' },
  '53': { cause: 'the server lacks resources', remedy: 'see to its memory, disks and limits' },
  '53100': { cause: 'no space left on device', remedy: 'make room on the disks of the server' },
  '53200': { cause: 'the server is out of memory', remedy: 'give it more, or let it use less' },
  '53300': { cause: 'the server takes no more connections', remedy: 'raise max_connections or lower DB_POOL_MAX_SIZE' },
  '53400': {
    cause: 'a configured limit of the server is exceeded',
    remedy: 'raise it; the log of the server names it',
  },
  '55': {
    cause: 'the database, or an object in it, cannot be used in its present state',
    remedy: 'the log of the server names it',
  },
  '57': { cause: 'the operator of the server intervened', remedy: 'nothing, unless it lasts' },
  '57P01': { cause: 'the server is shutting down, or ended the session', remedy: 'nothing, unless it lasts' },
  '57P02': { cause: 'the server crashed and recovers', remedy: 'see its log' },
  '57P03': { cause: 'the server is starting up or shutting down', remedy: 'nothing, unless it lasts' },
  '57P04': { cause: 'the database was dropped', remedy: 'create or restore it' },
  '58': { cause: 'the server cannot read or write its files', remedy: 'see to its disks and its log' },
  F0: { cause: 'the configuration of the server is wrong', remedy: 'see its log' },
  XX001: { cause: 'stored data are damaged', remedy: 'restore them; the log of the server names the object' },
  XX002: { cause: 'an index is damaged', remedy: 'rebuild it; the log of the server names it' },
}

/** The cause by the whole code, by its first three or two characters, else by whether a server sent the code. */
export function causeOf(code: string): Cause {
  const isFromServer = isSqlState(code) && !code.startsWith('08')
  return (
    CAUSES[code] ?? CAUSES[code.slice(0, 3)] ?? CAUSES[code.slice(0, 2)] ?? (isFromServer ? SESSION_ENDED : UNREACHABLE)
  )
}

/** Whether a server sent the code. The operating system's codes begin with E. */
const isSqlState = (code: string) => /^[0-9FHPX][0-9A-Z]{4}$/.test(code)
