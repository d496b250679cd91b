/** What stands behind a code of the server, the driver or a socket, and who mends it how: for the log, and for whoever starts us. */
export interface Cause {
  readonly cause: string
  readonly remedy: string
}

const ENDED: Cause = { cause: 'the server ended the session', remedy: 'see its log' }
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
  '28': { cause: 'the role may not log in', remedy: 'see to the role, its right to log in and pg_hba.conf' },
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

/** The nearest of what is known: the code, what it begins with, else that there is no connection or, by a code of the server, no longer. */
export function causeOf(code: string): Cause {
  return (
    CAUSES[code] ?? CAUSES[code.slice(0, 3)] ?? CAUSES[code.slice(0, 2)] ?? (isOfServer(code) ? ENDED : UNREACHABLE)
  )
}

const isOfServer = (code: string) => isSqlState(code) && !code.startsWith('08')

/** A code of the server, and not of the operating system, whose codes begin with E. */
export const isSqlState = (code: string) => /^[0-9FHPX][0-9A-Z]{4}$/.test(code)
