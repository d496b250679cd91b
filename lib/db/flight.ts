import type { Socket } from 'node:net'
import type postgres from 'postgres'
import { markInDoubt } from './doubt.ts'
import type { DatabaseUnavailable } from './errors.ts'
import { Entrant } from './gate.ts'

/** The driver without `begin`, `reserve`, `listen` and `end`: a statement is its own transaction here. */
export type Sql = postgres.ISql

/** Returns a driver query that has not been started. `isInDoubt`: an earlier attempt may have been carried out. */
export type Statement = (sql: Sql, isInDoubt: boolean) => PromiseLike<readonly unknown[]>

/** The place of one connection. */
export interface Slot {
  driver: postgres.Sql | null
  socket: Socket | null
  /** Runs out when the server does not let us in. */
  greeting: NodeJS.Timeout | undefined
  /** The server has let the present or last connection in: it may have got the statement. */
  isLetIn: boolean
  /** The connection has answered. */
  proven: boolean
  /** Rounds of the reaper since the last statement. */
  quietRounds: number
  flight: Flight | null
}

/** One call, from the gate to its answer, over all its attempts. */
export class Flight extends Entrant<Slot> {
  readonly statement: Statement
  readonly raw: boolean
  readonly startedAt = performance.now()
  readonly resolve: (value: never) => void
  readonly reject: (error: Error) => void
  readonly #launch: (slot: Slot, flight: Flight) => void
  attempts = 0
  /** Nobody waits for the answer any more: not worth another attempt. */
  isAbandoned = false
  /** The server may have carried out an attempt whose answer was lost. */
  isInDoubt = false
  /** Sweeps of the pool when the present attempt began. */
  sweeps = 0
  /** The present attempt; null while waiting for the next. */
  query: PromiseLike<unknown> | null = null

  /** `launch` is called with the slot, once the flight has one. */
  constructor(
    launch: (slot: Slot, flight: Flight) => void,
    statement: Statement,
    raw: boolean,
    resolve: (value: never) => void,
    reject: (error: Error) => void,
  ) {
    super()
    this.#launch = launch
    this.statement = statement
    this.raw = raw
    this.resolve = resolve
    this.reject = reject
  }

  /** The end of the last attempt, without an answer. */
  fail(error: Error): void {
    this.reject(this.isInDoubt ? markInDoubt(error) : error)
  }

  admit(slot: Slot): void {
    this.#launch(slot, this)
  }

  refuse(error: DatabaseUnavailable): void {
    this.reject(error)
  }
}
