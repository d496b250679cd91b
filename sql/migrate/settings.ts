import type { Config } from '../../lib/config/index.ts'
import { roleSettings } from '../../lib/db/session.ts'
import type { MigrateOptions } from './index.ts'

/**
 * The settings of a migration from the configuration. The role gets settings only behind a transaction pooler: they
 * apply to everybody who logs in with it, and other connections bring their own.
 */
export function migrationSettings(config: Config): Pick<MigrateOptions, 'maxRetries' | 'roleSettings'> {
  return {
    maxRetries: config.dbMigrationMaxRetries,
    ...(config.dbPrepare ? {} : { roleSettings: roleSettings(config.dbStatementTimeoutMs) }),
  }
}
