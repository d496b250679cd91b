/** Settings of a role in a database, for sessions behind a transaction pooler, which have no settings of their own. */
import type postgres from 'postgres'
import { quoted } from '../../lib/db/session.ts'
import type { Log } from '../../lib/observability/log.ts'

/** The wanted settings that the role of this session lacks in this database and that the release knows. */
export async function missingRoleSettings(
  sql: postgres.Sql,
  wanted: Readonly<Record<string, string>>,
): Promise<[string, string][]> {
  const rows = await sql<{ name: string; entry: string | null }[]>`
    select p.name,
           (select e.entry
            from pg_db_role_setting d, unnest(d.setconfig) e(entry)
            where d.setdatabase = (select oid from pg_database where datname = current_database())
              and d.setrole = (select oid from pg_roles where rolname = session_user)
              and lower(split_part(e.entry, '=', 1)) = lower(p.name)) as entry
    from pg_settings p`
  const present = new Map(rows.map(({ name, entry }) => [name, entry]))
  return Object.entries(wanted).filter(([name, value]) => present.has(name) && present.get(name) !== `${name}=${value}`)
}

/** Gives the role the missing settings. A refusal is only a warning: the operator of the database can make them. */
export async function setRoleSettings(
  sql: postgres.Sql,
  missing: readonly [string, string][],
  log: Log,
): Promise<void> {
  if (missing.length === 0) return
  const [here] = await sql<{ role: string; database: string }[]>`
    select quote_ident(session_user) as role, quote_ident(current_database()) as database`
  const { role, database } = here!
  const settings = missing.map(([name, value]) => `${name} = ${value}`)
  const statements = missing.map(
    ([name, value]) => `alter role ${role} in database ${database} set ${name} = ${quoted(value)};`,
  )
  try {
    await sql.unsafe(`begin; ${statements.join(' ')} commit`)
    log.info(
      { settings, undo: `alter role ${role} in database ${database} reset all` },
      'migrate: gave the role settings for its sessions in this database; open connections of a pooler lack them',
    )
  } catch (error) {
    await sql.unsafe('rollback')
    const { code, message } = error as { code?: string; message: string }
    log.warn(
      { settings, code, reason: message },
      'migrate: the role may not be given its settings; ask the operator of the database to do it',
    )
  }
}
