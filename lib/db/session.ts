/**
 * The settings of a session that an answer or our standing may depend on: a database or a role can have another default for each
 * (`alter database ... set`), and what the packet that opens a connection says goes before those. Left alone on purpose:
 * `search_path`, by which an owner chooses the schema, and `default_transaction_read_only`, by which one stops all writers.
 */
import type { GateName } from './gate.ts'

type Settings = Readonly<Record<string, string>>

/** Every pooler keeps these apart for its clients, so they go along whatever stands between. */
const TRACKED: Settings = {
  // Lists read times as text.
  TimeZone: 'UTC',
  DateStyle: 'ISO, MDY',
  // Without it a backslash in a text of ours would be an escape.
  standard_conforming_strings: 'on',
}

const SAME_EVERYWHERE: Settings = {
  // Each statement decides by what is committed when it looks, after it has waited for a lock.
  default_transaction_isolation: 'read committed',
  // 200 means committed.
  synchronous_commit: 'on',
  // An unquoted null in the text of an array is one.
  array_nulls: 'on',
  transform_null_equals: 'off',
  IntervalStyle: 'postgres',
  extra_float_digits: '1',
  // An error must not cost the connection, nor may a connection end because it rests.
  exit_on_error: 'off',
  idle_session_timeout: '0',
  // `statement_timeout` bounds every wait.
  lock_timeout: '0',
  jit: 'off',
}

/**
 * The settings of ingest and reads, whose every statement is an index look-up: a plan cached while a table was empty must not remain a scan of
 * it, and what the parameters are makes no difference to the plan, so none is made twice. A bitmap loses the order of its index.
 */
const LOOKUPS_ONLY: Settings = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
}

/** What goes along with the opening of any connection. */
export const openingSettings = (applicationName: string): Settings => ({
  application_name: applicationName,
  ...TRACKED,
})

/** What a session of that gate has beside those, in the form of `pg_settings.setting`. */
export function sessionSettings(gate: GateName, statementTimeoutMs: number): Settings {
  return {
    ...SAME_EVERYWHERE,
    statement_timeout: String(statementTimeoutMs),
    ...(gate === 'ingest' || gate === 'read' ? LOOKUPS_ONLY : {}),
  }
}

/**
 * The settings for the role, behind a transaction pooler, where a session has no settings of its own; jobs have those of look-ups then.
 * Not every release knows each.
 */
export const roleSettings = (statementTimeoutMs: number): Settings => ({
  ...sessionSettings('read', statementTimeoutMs),
  transaction_timeout: '0',
})

/** One statement of the simple protocol that gives a session these settings, or with `isLocal` the transaction. */
export function settingStatement(settings: Settings, isLocal = false): string {
  const rows = Object.entries(settings).map(([name, value]) => `(${quoted(name)}, ${quoted(value)})`)
  // Not every release knows each.
  return `select set_config(s.name, s.value, ${isLocal}) from (values ${rows.join(', ')}) s(name, value)
    where s.name like '%.%' or exists (select from pg_settings p where lower(p.name) = lower(s.name));`
}

/** The settings inside a migration. Limits that a role may set for its sessions do not cut it short. */
export const MIGRATION_SETTINGS: Settings = {
  ...SAME_EVERYWHERE,
  ...TRACKED,
  statement_timeout: '0',
  transaction_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  check_function_bodies: 'on',
}

export const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`
