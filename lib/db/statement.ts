import type { Socket } from 'node:net'
import type postgres from 'postgres'
import { markInDoubt } from './doubt.ts'
import type { DatabaseUnavailable } from './errors.ts'
import { Entrant } from './gate.ts'

/** The driver without `begin`, `reserve`, `listen` and `end`: a statement is its own transaction here. */
export type Sql = postgres.ISql

/** Returns a driver query that has not been started. `isInDoubt`: an earlier attempt may have been carried out. */
export type Statement = (sql: Sql, isInDoubt: boolean) => PromiseLike<readonly unknown[]>

/** A place for one connection at a time. */
export interface Slot {
  driver: postgres.Sql | null
  socket: Socket | null
  /** Runs out when the server does not let us in. */
  connectTimer: NodeJS.Timeout | undefined
  /** The server has let the present or last connection in: it may have got the statement. */
  isAuthenticated: boolean
  /** The connection has answered. */
  hasAnswered: boolean
  /** Rounds of the reaper since the last statement. */
  quietRounds: number
  pending: PendingStatement | null
}

/** One call from its arrival at the gate to its answer, over all attempts. */
export class PendingStatement extends Entrant<Slot> {
  readonly statement: Statement
  readonly raw: boolean
  readonly startedAt = performance.now()
  readonly resolve: (value: never) => void
  readonly reject: (error: Error) => void
  readonly #attempt: (slot: Slot, pending: PendingStatement) => void
  attempts = 0
  /** There is one attempt only. */
  isSingleAttempt = false
  /** The server may have carried out an attempt whose answer was lost. */
  isInDoubt = false
  /** The pool's count of sweeps when the present attempt began. */
  sweeps = 0
  /** The present attempt; null while waiting for the next. */
  query: PromiseLike<unknown> | null = null

  /** `attempt` is called with the slot, once the statement has one. */
  constructor(
    attempt: (slot: Slot, pending: PendingStatement) => void,
    statement: Statement,
    raw: boolean,
    resolve: (value: never) => void,
    reject: (error: Error) => void,
  ) {
    super()
    this.#attempt = attempt
    this.statement = statement
    this.raw = raw
    this.resolve = resolve
    this.reject = reject
  }

  /** Ends the call after its last attempt, without an answer. */
  fail(error: Error): void {
    this.reject(this.isInDoubt ? markInDoubt(error) : error)
  }

  admit(slot: Slot): void {
    this.#attempt(slot, this)
  }

  refuse(error: DatabaseUnavailable): void {
    this.reject(error)
  }
}
