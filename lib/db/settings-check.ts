import type { Database } from './database.ts'
import type { Log } from './pool.ts'
import { roleSettings } from './session.ts'

/**
 * Warns, once it has a connection, when the sessions of look-ups lack settings of the service: behind a transaction pooler, where
 * the role must have them, or behind one that swallows what opens a connection. Never rejects.
 */
export async function checkSettings(db: Database, options: { statementTimeoutMs: number; prepare: boolean; log: Log }): Promise<void> {
  const { statementTimeoutMs, prepare, log } = options
  const wanted = roleSettings(statementTimeoutMs)
  try {
    const rows = await db.read(
      (sql) => sql<{ name: string; setting: string }[]>`
        select name, setting from pg_settings where name = any (${Object.keys(wanted)}::text[])`,
    )
    const missing = rows.filter(({ name, setting }) => wanted[name] !== setting).map(({ name }) => `${name} = ${wanted[name]}`)
    // Only a role can have this one; where it is shorter than a statement may take, statements end by it.
    const counted = prepare ? missing.filter((one) => !one.startsWith('transaction_timeout')) : missing
    if (counted.length > 0) log.warn({ missing: counted }, prepare ? SWALLOWED : LACKING)
  } catch (error) {
    log.debug({ err: error }, 'the settings of the sessions could not be read')
  }
}

const SWALLOWED = 'the pooler passes on none of the settings that connections are opened with: give the role these'
const LACKING =
  'sessions lack settings of the service: give them to the role (`npm run migrate` does, for its own), and let the pooler open its connections anew'
