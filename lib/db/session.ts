/**
 * The settings of a session that answers or stability may depend on. A database or a role can have another default for
 * each (`alter database ... set`); the packet that opens a connection overrides these. Two are left alone on purpose:
 * with `search_path` an operator chooses the schema, and with `default_transaction_read_only` an operator stops all
 * writers.
 */
import type { GateName } from './gate.ts'

type Settings = Readonly<Record<string, string>>

/** Every pooler tracks these for its clients, so they can always be sent. */
const TRACKED: Settings = {
  // Lists return times as text.
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  // Without it a backslash in a literal would be an escape.
  standard_conforming_strings: 'on',
}

const SAME_EVERYWHERE: Settings = {
  // After waiting for a lock, a statement must see the rows that were committed meanwhile.
  default_transaction_isolation: 'read committed',
  // 200 means committed.
  synchronous_commit: 'on',
  // An unquoted null in the text of an array means null.
  array_nulls: 'on',
  transform_null_equals: 'off',
  IntervalStyle: 'postgres',
  extra_float_digits: '1',
  // Neither an error nor idleness may end the connection.
  exit_on_error: 'off',
  idle_session_timeout: '0',
  // `statement_timeout` bounds every wait.
  lock_timeout: '0',
  jit: 'off',
}

/**
 * The settings of ingest and reads, whose statements are all index look-ups. A plan that was cached while a table was
 * empty must not stay a scan of it. The parameters do not influence the plan, so one generic plan is enough. A bitmap
 * scan loses the order of its index.
 */
const LOOKUPS_ONLY: Settings = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
}

/** The settings in the packet that opens any connection. */
export const openingSettings = (applicationName: string): Settings => ({
  application_name: applicationName,
  ...TRACKED,
})

/** The further settings of a session of that gate, in the form of `pg_settings.setting`. */
export function sessionSettings(gate: GateName, statementTimeoutMs: number): Settings {
  return {
    ...SAME_EVERYWHERE,
    statement_timeout: String(statementTimeoutMs),
    ...(gate === 'ingest' || gate === 'read' ? LOOKUPS_ONLY : {}),
  }
}

/**
 * The settings for the role, for use behind a transaction pooler, where a session has no settings of its own; jobs then
 * have those of look-ups. Older releases do not know all of them.
 */
export const roleSettings = (statementTimeoutMs: number): Settings => ({
  ...sessionSettings('read', statementTimeoutMs),
  transaction_timeout: '0',
})

/**
 * A statement for the simple protocol that makes these settings for the session, or with `isLocal` for the transaction.
 */
export function settingStatement(settings: Settings, isLocal = false): string {
  const rows = Object.entries(settings).map(([name, value]) => `(${quoted(name)}, ${quoted(value)})`)
  // Settings that the release does not know are skipped.
  return `select set_config(s.name, s.value, ${isLocal}) from (values ${rows.join(', ')}) s(name, value)
    where s.name like '%.%' or exists (select from pg_settings p where lower(p.name) = lower(s.name));`
}

/** The settings inside a migration, which time limits of the role must not end. */
export const MIGRATION_SETTINGS: Settings = {
  ...SAME_EVERYWHERE,
  ...TRACKED,
  statement_timeout: '0',
  transaction_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  check_function_bodies: 'on',
}

export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
