import type { Log } from '../observability/log.ts'
import type { Target } from './connector.ts'
import type { DatabaseUnavailable } from './errors.ts'
import type { GateLimits, GateStats } from './gate.ts'

export interface PoolOptions extends GateLimits, Target {
  slots: number
  /** A statement silent for this long means the pool is lost. */
  deadlineMs: number
  /** Further attempts after a deadlock, a serialization failure or a lost connection. */
  retries: number
  log: Log
  /** The pool was replaced, or its last connection was lost. Must not throw. */
  onRenewed: () => void
  /** A statement was given up, and not for a fault of its own. Must not throw. */
  onUnavailable: (error: DatabaseUnavailable) => void
}

export interface PoolStats extends GateStats {
  /** Connections that have answered at least once and still stand. */
  open: number
  idle: number
  /** How often a silent statement cost the whole pool. */
  replaced: number
  /** Attempts that failed for want of a connection. */
  lost: number
  retried: number
  /** No connection stands, and the last was lost or could not be had: whether there is one to be had, only a statement can tell. */
  isCutOff: boolean
}
