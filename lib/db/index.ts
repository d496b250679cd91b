export { causeOf } from './causes.ts'
export {
  type Database,
  type DatabaseOptions,
  type DatabaseStats,
  type Gate,
  openDatabase,
  splitPool,
} from './database.ts'
export { isInDoubt } from './doubt.ts'
export type { Connection } from './driver-options.ts'
export { classify, DatabaseBusy, DatabaseRefused, DatabaseUnavailable } from './errors.ts'
export { fixed } from './fixed.ts'
export { createFold, type FoldOptions } from './fold.ts'
export { foldedWrite, perDatabase, sharedRead } from './folded.ts'
export type { GateName, GateStats } from './gate.ts'
export type { PoolStats } from './pool-options.ts'
export type { Sql } from './statement.ts'
