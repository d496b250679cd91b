import type { Log } from '../observability/log.ts'
import type { Database } from './database.ts'
import { roleSettings } from './session.ts'

/**
 * Warns, once it has a connection, when the sessions of look-ups lack settings of the service: behind a transaction pooler, where
 * the role must have them, behind one that swallows what opens a connection, or where only a role can have one
 * (`transaction_timeout`, which not every release knows). Never rejects.
 */
export async function checkSettings(db: Database, options: { statementTimeoutMs: number; log: Log }): Promise<void> {
  const { statementTimeoutMs, log } = options
  const wanted = roleSettings(statementTimeoutMs)
  try {
    const rows = await db.read(
      (sql) => sql<{ name: string; setting: string }[]>`
        select name, setting from pg_settings where name = any (${Object.keys(wanted)}::text[])`,
    )
    const missing = rows
      .filter(({ name, setting }) => wanted[name] !== setting)
      .map(({ name }) => `${name} = ${wanted[name]}`)
    if (missing.length > 0) log.warn({ missing }, LACKING)
  } catch (error) {
    log.debug({ err: error }, 'the settings of the sessions could not be read')
  }
}

const LACKING =
  'sessions lack settings of the service: give them to its role in this database; connections that a pooler holds open have them later'
