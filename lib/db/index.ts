export {
  type BatcherOptions,
  batchedWrite,
  createBatcher,
  perDatabase,
  sharedRead,
} from './batcher.ts'
export {
  type Database,
  type DatabaseOptions,
  type DatabaseStats,
  type Gate,
  openDatabase,
  splitPool,
} from './database.ts'
export type { Connection } from './driver-options.ts'
export {
  causeOf,
  classify,
  DatabaseBusy,
  DatabaseRefused,
  DatabaseUnavailable,
  isNoConnection,
  isOutcomeUnknown,
} from './errors.ts'
export type { GateName, GateStats } from './gate.ts'
export type { PoolStats } from './pool.ts'
export { fixed, type Sql } from './statement.ts'
