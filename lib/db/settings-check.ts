import type { Log } from '../observability/log.ts'
import type { Database } from './database.ts'
import { roleSettings } from './session.ts'

/**
 * Warns, once there is a connection, when the sessions of look-ups lack settings of the service. That happens behind a
 * transaction pooler when the role lacks them, behind a pooler that drops them, and for `transaction_timeout`, which
 * only the role can set. Never rejects.
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
    if (missing.length > 0) log.warn({ missing }, MISSING_SETTINGS)
  } catch (error) {
    log.debug({ err: error }, 'the settings of the sessions could not be read')
  }
}

const MISSING_SETTINGS =
  'sessions lack settings of the service: give them to its role in this database; ' +
  'connections that a pooler holds open have them later'
