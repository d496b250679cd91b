import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'
import { classify, DatabaseBusy } from '../../lib/db/errors.ts'
import { MIGRATION_SETTINGS, settingStatement } from '../../lib/db/session.ts'
import type { Log } from '../../lib/observability/log.ts'
import { MigrationFailed } from './errors.ts'
import type { FunctionFiles, MigrationFile } from './files.ts'
import { BEGIN, isUnreachable } from './session.ts'

/** Waits and attempts for locks. A waiting DDL statement stops all traffic behind it. */
export interface LockPatience {
  lockTimeoutMs: number
  /** The same for a file outside a transaction, whose waiting holds up nobody. */
  aloneLockTimeoutMs: number
  attempts: number
  pauseMs: number
}

const STATEMENT_TIMEOUT = '57014'

/** Creates the tables that record the applied files. */
export async function createHistory(sql: postgres.Sql): Promise<void> {
  await sql.unsafe(`
    create table if not exists schema_migration (
      version    integer   primary key,
      name       text      not null,
      applied_at timestamp not null default (now() at time zone 'utc')
    );
    create table if not exists schema_functions (
      is_only    boolean   primary key default true check (is_only),
      hash       text      not null,
      applied_at timestamp not null default (now() at time zone 'utc')
    )`)
}

/**
 * Applies one file and records it, both or neither. A file outside a transaction is recorded after its statement, and
 * runs again when that record is missing.
 * @throws MigrationFailed; connection errors pass through
 */
export async function applyMigration(
  sql: postgres.Sql,
  file: MigrationFile,
  patience: LockPatience,
  log: Log,
): Promise<void> {
  const record = `insert into schema_migration (version, name) values (${file.version}, '${file.name}')`
  if (!file.isAlone) {
    // The record comes first: if the lock ever fails, a second migrator stops at its key before it changes anything.
    await inTransaction(sql, `migrations/${file.name}.sql`, `${record};`, file.text, patience, log)
    return
  }
  await runAlone(sql, file, patience, log)
  await sql.unsafe(record)
}

/** Applies all function files in one transaction and records their hash. Errors as `applyMigration`. */
export async function applyFunctions(
  sql: postgres.Sql,
  functions: FunctionFiles,
  patience: LockPatience,
  log: Log,
): Promise<void> {
  const record = `
    insert into schema_functions (hash) values ('${functions.hash}')
    on conflict (is_only) do update set hash = excluded.hash, applied_at = excluded.applied_at;`
  await inTransaction(sql, 'functions', record, functions.text, patience, log)
}

async function inTransaction(
  sql: postgres.Sql,
  name: string,
  record: string,
  text: string,
  patience: LockPatience,
  log: Log,
): Promise<void> {
  const head = `${BEGIN} set local lock_timeout = ${patience.lockTimeoutMs}; ${record}\n`
  for (let attempt = 1; ; attempt++) {
    try {
      await sql.unsafe(`${head}${text}\n;commit`)
      return
    } catch (error) {
      const problem = classify(error)
      if (isUnreachable(problem)) throw error
      await sql.unsafe('rollback')
      if (!isContended(problem) || attempt >= patience.attempts) fail(name, text, head.length, error)
      log.warn({ file: name, code: problem.code, attempt }, 'migrate: held up by other sessions, trying again')
      await delay(patience.pauseMs)
    }
  }
}

/** Sets the limits for the session: there is no `set local` outside a transaction. Waiting holds up no traffic here. */
async function runAlone(sql: postgres.Sql, file: MigrationFile, patience: LockPatience, log: Log): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await sql.unsafe(settingStatement({ ...MIGRATION_SETTINGS, lock_timeout: String(patience.aloneLockTimeoutMs) }))
    try {
      await dropInvalidIndexes(sql, file.text)
      await sql.unsafe(file.text)
      break
    } catch (error) {
      const problem = classify(error)
      if (isUnreachable(problem)) throw error
      if (!isContended(problem) || attempt >= patience.attempts)
        fail(`migrations/${file.name}.sql`, file.text, 0, error)
      log.warn({ file: file.name, code: problem.code, attempt }, 'migrate: held up by other sessions, trying again')
      await delay(patience.pauseMs)
    }
  }
  await sql.unsafe('reset all')
}

/** Drops invalid indexes that failed concurrent builds left behind, and that `if not exists` would accept. */
async function dropInvalidIndexes(sql: postgres.Sql, text: string): Promise<void> {
  for (const [, name] of text.matchAll(/\bindex\s+concurrently\s+if\s+not\s+exists\s+"?(\w+)"?/gi)) {
    const invalid = await sql<{ id: string }[]>`
      select quote_ident(relname) as id
      from pg_index join pg_class on pg_class.oid = indexrelid
      where relname = ${name!} and not indisvalid and pg_table_is_visible(indexrelid)`
    for (const { id } of invalid) await sql.unsafe(`drop index concurrently if exists ${id}`)
  }
}

/** A lock timeout, a deadlock or a serialization failure, caused by other sessions and gone a moment later. */
const isContended = (problem: Error): problem is DatabaseBusy =>
  problem instanceof DatabaseBusy && problem.code !== STATEMENT_TIMEOUT

function fail(name: string, text: string, headLength: number, error: unknown): never {
  const position = Number((error as { position?: unknown }).position ?? Number.NaN) - headLength
  const line = position > 0 ? `:${text.slice(0, position).split('\n').length}` : ''
  // Each file lifts the limits of its session, so the one that ended it belongs to a pooler in between.
  const advice =
    (error as { code?: unknown }).code === STATEMENT_TIMEOUT
      ? '; run `npm run migrate` on a connection that goes past the pooler'
      : ''
  throw new MigrationFailed(`${name}${line}: ${(error as Error).message}${advice}`, { cause: error })
}
