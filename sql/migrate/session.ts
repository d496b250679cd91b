import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'
import type { Connection } from '../../lib/db/driver-options.ts'
import { DatabaseUnavailable, isNoConnection } from '../../lib/db/errors.ts'
import { openPool, withConnectTimeout } from '../../lib/db/open-pool.ts'
import { MIGRATION_SETTINGS, openingSettings, settingStatement } from '../../lib/db/session.ts'
import type { Log } from '../../lib/observability/log.ts'
import { MigrationFailed } from './errors.ts'

/** One connection for statements, while a second one holds the lock that keeps other migrators out. */
export interface LockedSession {
  sql: postgres.Sql
  /** Throws when the lock was lost with its connection. To be called before each step. */
  assertLocked(): void
}

// The two-key space of advisory locks does not collide with the locks of jobs, which have one 64-bit key.
const LOCK = [0x62726f6b, 1] as const
const LOCK_POLL_MS = 100
const LOCK_REPORT_MS = 10_000
/** Longer than any migration of ours takes: the holder is stuck, or is a connection that a pooler forgot. */
export const LOCK_WAIT_MS = 60 * 60_000

/**
 * Begins every transaction. Read committed, because at other levels a transaction keeps its first snapshot: `create
 * index concurrently` would wait for the transaction that holds the lock, which waits for the index.
 */
export const BEGIN = `begin isolation level read committed; ${settingStatement(MIGRATION_SETTINGS, true)}`

/** Codes of connection failures that another attempt would not cure; they are reported at once. */
const LASTING = new Set(['25006', 'TLS_FAILED'])

/**
 * Whether an error of `classify` means that there is no connection and another attempt may help: a login, a missing
 * database or a full server may be set right meanwhile.
 */
export function isUnreachable(problem: Error): problem is DatabaseUnavailable {
  return isNoConnection(problem) && !LASTING.has(problem.code)
}

/**
 * Runs `work` under the migration lock and ends both connections.
 *
 * An idle transaction of its own holds the lock. So the lock ends with its connection, holds through a transaction
 * pooler, and keeps no snapshot that `create index concurrently` would wait for. For the same reason a migrator that
 * finds it taken tries again later instead of waiting inside a statement.
 */
export async function withLock<T>(
  connection: Connection,
  log: Log,
  lockWaitMs: number,
  work: (session: LockedSession) => Promise<T>,
): Promise<T> {
  let isLost = false
  const lock = open(connection, log, () => (isLost = true))
  const sql = open(connection, log)
  try {
    await Promise.all([withConnectTimeout(lock`select`), withConnectTimeout(sql`select`)])
    await takeLock(lock, log, lockWaitMs)
    const assertLocked = () => {
      if (isLost)
        throw new DatabaseUnavailable('the connection that holds the migration lock was lost', 'CONNECTION_CLOSED')
    }
    return await work({ sql, assertLocked })
  } finally {
    await Promise.all([lock.end({ timeout: 1 }), sql.end({ timeout: 1 })])
  }
}

/** Runs `work` on one connection without the lock. */
export async function withConnection<T>(
  connection: Connection,
  log: Log,
  work: (sql: postgres.Sql) => Promise<T>,
): Promise<T> {
  const sql = open(connection, log)
  try {
    await withConnectTimeout(sql`select`)
    return await work(sql)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

function open(connection: Connection, log: Log, onclose?: () => void): postgres.Sql {
  return openPool(connection, {
    max: 1,
    prepare: false,
    fetch_types: false,
    connect_timeout: 0,
    idle_timeout: 0,
    max_lifetime: null,
    connection: openingSettings('broker-migrate'),
    onnotice: ({ message, code }) => log.debug({ code }, message ?? 'notice'),
    ...(onclose ? { onclose } : {}),
  })
}

async function takeLock(sql: postgres.Sql, log: Log, waitMs: number): Promise<void> {
  const start = Date.now()
  let reported = start
  for (;;) {
    const results = await sql.unsafe<{ taken: boolean }[]>(
      `${BEGIN} select pg_try_advisory_xact_lock(${LOCK.join(', ')}) as taken`,
    )
    const rows = (results as unknown as { taken: boolean }[][]).at(-1)
    if (rows?.[0]?.taken) return
    await sql.unsafe('rollback')
    const now = Date.now()
    if (now - start >= waitMs)
      throw new MigrationFailed(`another migration has held the lock for ${waitMs / 1000} s: ${await holder(sql)}`)
    if (now - reported >= LOCK_REPORT_MS) {
      reported = now
      log.info({}, `migrate: waiting for another migration to end: ${await holder(sql)}`)
    }
    await delay(LOCK_POLL_MS)
  }
}

async function holder(sql: postgres.Sql): Promise<string> {
  const [row] = await sql<{ pid: number }[]>`
    select pid from pg_locks
    where locktype = 'advisory' and classid = ${LOCK[0]} and objid = ${LOCK[1]} and objsubid = 2 and granted
      and database = (select oid from pg_database where datname = current_database())`
  return row === undefined ? 'nobody holds it now' : `server process ${row.pid} holds it`
}
