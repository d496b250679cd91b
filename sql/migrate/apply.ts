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
 * runs again if the record is missing.
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
    // The record comes first: if the lock ever fails, a second migrator stops at the record's key before it changes
    // anything.
    await inTransaction(sql, [{ file: `migrations/${file.name}.sql`, text: file.text }], `${record};`, patience, log)
    return
  }
  await runAlone(sql, file, patience, log)
  await sql.unsafe(record)
}

/**
 * Checks the bodies of the functions that this transaction has written, as `create function` would have done. Running
 * the files a second time would check them too, but PostgreSQL reports no line for an error in a body that it sees
 * twice.
 */
const CHECK_BODIES = `
  select case l.lanname when 'sql' then fmgr_sql_validator(p.oid) when 'plpgsql' then plpgsql_validator(p.oid) end
  from pg_proc p join pg_language l on l.oid = p.prolang
  where p.xmin = pg_current_xact_id()::xid`

/**
 * Applies all function files in one transaction and remembers their hash. Errors as `applyMigration`.
 *
 * Bodies are checked at the end, so that a function may call one from a later file. Only SQL-standard bodies
 * (`return ...`, `begin atomic`) and aggregates need what they call earlier in the order.
 */
export async function applyFunctions(
  sql: postgres.Sql,
  functions: FunctionFiles,
  patience: LockPatience,
  log: Log,
): Promise<void> {
  const record = `
    insert into schema_functions (hash) values ('${functions.hash}')
    on conflict (is_only) do update set hash = excluded.hash, applied_at = excluded.applied_at;`
  const parts = [
    { file: 'functions', text: 'set local check_function_bodies = off' },
    ...functions.files.map(({ file, text }) => ({ file: `functions/${file}`, text })),
    { file: 'functions', text: `set local check_function_bodies = on; ${CHECK_BODIES}` },
  ]
  await inTransaction(sql, parts, record, patience, log)
}

interface Part {
  file: string
  text: string
}

/** Runs the parts as one message, so that no transaction stays open if the connection is lost in between. */
async function inTransaction(
  sql: postgres.Sql,
  parts: readonly Part[],
  record: string,
  patience: LockPatience,
  log: Log,
): Promise<void> {
  const head = `${BEGIN} set local lock_timeout = ${patience.lockTimeoutMs}; ${record}\n`
  const text = `${head}${parts.map((part) => `${part.text}\n;\n`).join('')}commit`
  for (let attempt = 1; ; attempt++) {
    try {
      await sql.unsafe(text)
      return
    } catch (error) {
      const problem = classify(error)
      if (isUnreachable(problem)) throw error
      await sql.unsafe('rollback')
      if (!isContended(problem) || attempt >= patience.attempts) fail(parts, head.length, error)
      const file = parts.length === 1 ? parts[0]!.file : 'functions'
      log.warn({ file, code: problem.code, attempt }, 'migrate: held up by other sessions, trying again')
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
        fail([{ file: `migrations/${file.name}.sql`, text: file.text }], 0, error)
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

/** Names the part and the line at which PostgreSQL stopped; without a position, the first part's file alone. */
function fail(parts: readonly Part[], headLength: number, error: unknown): never {
  const { code, message, position } = error as Error & { code?: unknown; position?: unknown }
  let file = parts[0]!.file
  let left = Number(position ?? Number.NaN) - headLength
  for (const part of left > 0 ? parts : []) {
    if (left <= part.text.length) {
      file = `${part.file}:${part.text.slice(0, left).split('\n').length}`
      break
    }
    left -= part.text.length + '\n;\n'.length
  }
  // Limits are lifted for every file; a timeout that still applies is set by a pooler, out of a session's reach.
  const way = code === STATEMENT_TIMEOUT ? '; run `npm run migrate` on a connection that goes past the pooler' : ''
  throw new MigrationFailed(`${file}: ${message}${way}`, { cause: error })
}
