import type postgres from 'postgres'
import type { Sql } from './statement.ts'

/** Of the time a caller waits, what the server is given: the rest is for the way there and back. */
const SHARE = 0.8

type Call = (ms: number, statement: (sql: Sql) => postgres.PendingQuery<postgres.Row[]>) => Promise<unknown>

/**
 * The rows of a constant statement that the server itself ends in time: a locked table must not keep the connection from the next
 * question, nor the server busy for a connection that was cut. Two statements in one simple message are one transaction, so the limit
 * holds behind a transaction pooler too. `call` is `within` or `once` of a gate.
 */
export async function askBriefly<Row>(call: Call, ms: number, text: string): Promise<readonly Row[]> {
  const limitMs = Math.max(1, Math.round(ms * SHARE))
  const results = await call(ms, (sql) => sql.unsafe(`set local statement_timeout = ${limitMs}; ${text}`))
  return (results as [unknown, Row[]])[1]
}
