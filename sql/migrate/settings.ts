import type { Config } from '../../lib/config.ts'
import { roleSettings } from '../../lib/db/session.ts'
import type { MigrateOptions } from './index.ts'

/**
 * What the configuration says to a migration. Only behind a transaction pooler does the role get settings: they are in force for
 * whoever else logs in with it, and where a connection is ours alone it brings its own.
 */
export function migrationSettings(config: Config): Pick<MigrateOptions, 'maxRetries' | 'roleSettings'> {
  return {
    maxRetries: config.dbMigrationMaxRetries,
    ...(config.dbPrepare ? {} : { roleSettings: roleSettings(config.dbStatementTimeoutMs) }),
  }
}
