import { schemaVersion } from '../../sql/migrate.ts'
import type { Database } from './database.ts'

const UNDEFINED_TABLE = '42P01'

/** `unreachable`: no answer within `maxWaitMs`. `outdated`: the database answers but lacks a migration of this release. */
export async function schemaState(db: Database, maxWaitMs: number): Promise<'ready' | 'outdated' | 'unreachable'> {
  try {
    const [row] = await db.probe.within(
      maxWaitMs,
      (sql) => sql<{ version: number | null }[]>`select max(version) as version from schema_migration`,
    )
    return Number(row?.version ?? 0) >= newest() ? 'ready' : 'outdated'
  } catch (error) {
    return (error as { code?: string }).code === UNDEFINED_TABLE ? 'outdated' : 'unreachable'
  }
}

let version: number | undefined
const newest = () => (version ??= schemaVersion())
