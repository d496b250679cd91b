/** Brings a database to this release's schema. */
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'
import type { Connection } from '../../lib/db/driver-options.ts'
import { causeOf, classify } from '../../lib/db/errors.ts'
import type { Log } from '../../lib/observability/log.ts'
import { applyFunctions, applyMigration, createHistory, type LockPatience } from './apply.ts'
import { DatabaseUnreachable, SchemaTooNew, UnsupportedDatabase } from './errors.ts'
import { readSchema, type Schema, SQL_FOLDER } from './files.ts'
import { missingRoleSettings, setRoleSettings } from './role.ts'
import { isUnreachable, LOCK_WAIT_MS, withConnection, withLock } from './session.ts'

export { DatabaseUnreachable, MigrationFailed, SchemaTooNew, UnsupportedDatabase } from './errors.ts'

export interface MigrateOptions {
  /** A URL (unix sockets in either libpq form) or the driver's options. A database role that may create tables. */
  connection: Connection
  log: Log
  /** Wait of a statement for a lock before its file is rolled back and tried again. */
  lockTimeoutMs?: number
  /** Attempts to reach the database, and attempts of a file that finds its tables locked. */
  maxRetries?: number
  /** Pause between two attempts. */
  retryPauseMs?: number
  /** Longest wait for another migration to end. */
  lockWaitMs?: number
  /** Wait for each lock of a file that runs outside a transaction. */
  aloneLockTimeoutMs?: number
  /**
   * Settings to give our role in this database, for use behind a transaction pooler. Without it the role is unchanged.
   */
  roleSettings?: Readonly<Record<string, string>>
  /** Holds `migrations/` and `functions/`. */
  folder?: string
}

interface Patience extends LockPatience {
  lockWaitMs: number
}

export interface MigrateResult {
  /** Names of the files this call applied, in order. */
  applied: string[]
  /** The schema's version now. */
  version: number
}

/** A file that takes longer is logged at `info`. */
const LONG_FILE_MS = 1_000
const OLDEST_SERVER = 150_000

/**
 * Applies the missing files in order, then the functions if they changed. Any number of processes may call it at once:
 * one works, and the others wait and find nothing left to do. A database that is up to date is only read.
 * @throws SchemaTooNew, UnsupportedDatabase, MigrationFailed, DatabaseUnreachable
 */
export async function migrate(options: MigrateOptions): Promise<MigrateResult> {
  const { log, maxRetries = 10, retryPauseMs = 2_000, folder = SQL_FOLDER } = options
  const patience: Patience = {
    lockTimeoutMs: options.lockTimeoutMs ?? 2_000,
    aloneLockTimeoutMs: options.aloneLockTimeoutMs ?? 5 * 60_000,
    lockWaitMs: options.lockWaitMs ?? LOCK_WAIT_MS,
    attempts: maxRetries,
    pauseMs: retryPauseMs,
  }
  // Before any attempt, because a fault of a file is not one of the database.
  const schema = readSchema(folder)
  const applied: string[] = []
  for (let attempt = 1; ; attempt++) {
    try {
      await bringUpToDate(options, schema, patience, applied)
      return { applied, version: schema.version }
    } catch (error) {
      const problem = classify(error)
      if (!isUnreachable(problem)) throw error
      const { code } = problem
      const { cause, remedy } = causeOf(code)
      if (attempt >= maxRetries)
        throw new DatabaseUnreachable(
          `no connection to the database (${code}) in ${attempt} attempts: ${cause}; ${remedy}`,
          {
            cause: error,
          },
        )
      log.warn({ code, attempt }, `migrate: no connection to the database, trying again: ${cause}`)
      await delay(retryPauseMs)
    }
  }
}

async function bringUpToDate(
  options: MigrateOptions,
  schema: Schema,
  patience: Patience,
  applied: string[],
): Promise<void> {
  const { connection, log, roleSettings = {} } = options
  const { migrations, functions, version: known } = schema

  /** Compares the database with the schema of this release; returns the missing parts. */
  async function compare(sql: postgres.Sql) {
    const history = await readHistory(sql)
    const newest = Math.max(0, ...history.versions.keys())
    if (newest > known) throw new SchemaTooNew(newest, known)
    for (const [version, name] of history.versions) {
      if (migrations.find((file) => file.version === version)?.name === name) continue
      throw new UnsupportedDatabase(`the database was migrated by ${name}, which this release does not have`)
    }
    return {
      migrations: migrations.filter(({ version }) => !history.versions.has(version)),
      isFunctionsStale: history.functionsHash !== functions.hash,
      settings: await missingRoleSettings(sql, roleSettings),
    }
  }

  const isCurrent = await withConnection(connection, log, async (sql) => {
    await assertSupported(sql)
    const missing = await compare(sql)
    return missing.migrations.length === 0 && !missing.isFunctionsStale && missing.settings.length === 0
  })
  if (isCurrent) return

  await withLock(connection, log, patience.lockWaitMs, async ({ sql, assertLocked }) => {
    const begun = Date.now()
    await createHistory(sql)
    const missing = await compare(sql)
    for (const file of missing.migrations) {
      assertLocked()
      const start = Date.now()
      await applyMigration(sql, file, patience, log)
      applied.push(file.name)
      const ms = Date.now() - start
      log[ms < LONG_FILE_MS ? 'debug' : 'info']({ file: file.name, ms }, 'migrate: applied')
    }
    assertLocked()
    if (missing.isFunctionsStale) await applyFunctions(sql, functions, patience, log)
    await setRoleSettings(sql, missing.settings, log)
    const { length } = missing.migrations
    if (length > 0)
      log.info({ files: length, version: known, ms: Date.now() - begun }, 'migrate: the schema was migrated')
  })
}

async function readHistory(
  sql: postgres.Sql,
): Promise<{ versions: Map<number, string>; functionsHash: string | undefined }> {
  const [found] = await sql<
    { is_there: boolean }[]
  >`select to_regclass('schema_migration') is not null and to_regclass('schema_functions') is not null as is_there`
  if (!found?.is_there) return { versions: new Map(), functionsHash: undefined }
  const rows = await sql<{ version: number; name: string }[]>`select version, name from schema_migration`
  const [functions] = await sql<{ hash: string }[]>`select hash from schema_functions`
  return { versions: new Map(rows.map(({ version, name }) => [version, name])), functionsHash: functions?.hash }
}

async function assertSupported(sql: postgres.Sql): Promise<void> {
  const [server] = await sql<{ encoding: string; number: number; version: string }[]>`
    select current_setting('server_encoding')         as encoding,
           current_setting('server_version_num')::int as number,
           current_setting('server_version')          as version`
  if (server!.number < OLDEST_SERVER)
    throw new UnsupportedDatabase(`PostgreSQL ${server!.version} is too old: 15 or newer is needed`)
  if (server!.encoding !== 'UTF8')
    throw new UnsupportedDatabase(`the database's encoding is ${server!.encoding}: create it with encoding UTF8`)
}
