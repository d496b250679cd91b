import type { Socket } from 'node:net'
import type postgres from 'postgres'
import type { DatabaseUnavailable } from './errors.ts'
import { Entrant } from './gate.ts'

/** The driver without `begin`, `reserve`, `listen` and `end`: a statement is its own transaction here. */
export type Sql = postgres.ISql

/** What a statement callback returns: a driver query that has not been started. */
export type Statement = (sql: Sql) => PromiseLike<readonly unknown[]>

/** The place of one connection. */
export interface Slot {
  driver: postgres.Sql | null
  socket: Socket | null
  /** Runs out when the server does not let us in. */
  greeting: NodeJS.Timeout | undefined
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

  admit(slot: Slot): void {
    this.#launch(slot, this)
  }

  refuse(error: DatabaseUnavailable): void {
    this.reject(error)
  }
}
