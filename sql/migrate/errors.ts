/** The database was migrated by a newer release than this one. */
export class SchemaTooNew extends Error {
  constructor(found: number, known: number) {
    super(`the database schema is at version ${found} but this release knows only up to ${known}: deploy the newer release again`)
    this.name = 'SchemaTooNew'
  }
}

/** The server cannot hold this schema. */
export class UnsupportedDatabase extends Error {
  override name = 'UnsupportedDatabase'
}

/** A file failed and left nothing behind. The message names file and line, `cause` is the driver's error. */
export class MigrationFailed extends Error {
  override name = 'MigrationFailed'
}

/** No connection, or it was lost, and the attempts are used up. `cause` is the last error. */
export class DatabaseUnreachable extends Error {
  override name = 'DatabaseUnreachable'
}

// Network and driver codes, then PostgreSQL's: connection exceptions, too many connections, going down, starting up.
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  '08000',
  '08003',
  '08006',
  '53300',
  '57P01',
  '57P02',
  '57P03',
])

// Lock timeout, deadlock, serialization: another session's traffic, gone a moment later.
const CONTENDED = new Set(['55P03', '40P01', '40001'])

/** No connection, or one that the server refused or ended: a login, a missing database, a server that is full or starts may be set right. */
export const isUnreachable = (error: unknown): boolean => UNREACHABLE.has(codeOf(error)) || isFatal(error)
export const isContended = (error: unknown): boolean => CONTENDED.has(codeOf(error))

function isFatal(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: unknown }
  return severity === 'FATAL' || severity === 'PANIC'
}

/** SQLSTATE or system error code; a refused connection to several addresses carries it on its parts. */
export function codeOf(error: unknown): string {
  const { code, errors } = (error ?? {}) as { code?: unknown; errors?: { code?: unknown }[] }
  return String(code ?? errors?.[0]?.code ?? '')
}
