/** One statement on its way: its text, the connection it uses, and the call that waits for it. */
import type { Socket } from 'node:net'
import type postgres from 'postgres'
import { type DatabaseUnavailable, markOutcomeUnknown } from './errors.ts'
import { Entrant } from './gate.ts'

/** The driver without `begin`, `reserve`, `listen` and `end`: each statement is its own transaction. */
export type Sql = postgres.ISql

/**
 * Returns a driver query that has not been started. `isOutcomeUnknown`: the server may have carried out an earlier
 * attempt.
 */
export type Statement = (sql: Sql, isOutcomeUnknown: boolean) => PromiseLike<readonly unknown[]>

/** Room for one connection at a time. */
export interface Slot {
  driver: postgres.Sql | null
  socket: Socket | null
  /** Ends the attempt to connect. */
  connectTimer: NodeJS.Timeout | undefined
  /** The server accepted the present or last connection, so it may have received the statement. */
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
  isSingleAttempt = false
  /** The server may have carried out an attempt whose answer was lost. */
  isOutcomeUnknown = false
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
    this.reject(this.isOutcomeUnknown ? markOutcomeUnknown(error) : error)
  }

  admit(slot: Slot): void {
    this.#attempt(slot, this)
  }

  refuse(error: DatabaseUnavailable): void {
    this.reject(error)
  }
}

/** The fields of a driver query that keep its values, text and result alive. */
interface DriverQuery {
  args: unknown
  options: unknown
  parameters: unknown
  string: unknown
  signature: unknown
}

/**
 * Takes the rows out of a finished query and clears the query. The query object outlives its use: `this.resolve = (x)
 * => ...` in the driver's constructor makes V8 allocate it among the old objects, where everything it refers to stays
 * in memory until the next full collection.
 */
export function takeRows(query: unknown, result: unknown[]): unknown[] {
  const held = query as DriverQuery
  held.args = held.options = held.parameters = held.string = held.signature = null
  return result.splice(0)
}

type Value = string | number | boolean | null

/**
 * A statement whose text is built once; `$1`, `$2`, ... stand for its values, each once and in this order (TypeError
 * otherwise). With nested fragments every call would create one driver query for each fragment, which is costly
 * garbage.
 */
export function fixed<T extends readonly postgres.MaybeRow[] = postgres.Row[]>(
  text: string,
): (sql: Sql, ...values: Value[]) => postgres.PendingQuery<T> {
  const pieces = text.split(/\$\d+/)
  for (const [i, placeholder] of (text.match(/\$\d+/g) ?? []).entries())
    if (placeholder !== `$${i + 1}`) throw new TypeError(`expected $${i + 1}, found ${placeholder}`)
  const strings = Object.assign(pieces, { raw: pieces })
  return (sql, ...values) => {
    if (values.length !== pieces.length - 1)
      throw new TypeError(`expected ${pieces.length - 1} values, found ${values.length}`)
    return sql<T>(strings, ...values)
  }
}
