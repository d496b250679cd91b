/** Reads a list of flows to its end, or to a limit, in bounded memory. */
import type { z } from 'zod'
import type { Gate } from '../db/index.ts'
import type { Render } from './forms.ts'
import { type FlowQuery, type Place, readFlows, readFlowsPlain } from './read.ts'

/** Flows that the first statement of a list examines, and each further one. */
const FIRST_EXAMINED = 10_000
const MAX_EXAMINED = 50_000

export class FlowList {
  readonly record: z.ZodObject
  readonly #gate: Gate
  readonly #query: FlowQuery
  #after: Place | null
  #isOver = false
  /** Flows read, those left out as unknown, and those examined at most. */
  count = 0
  unstamped = 0
  examined = 0

  constructor(gate: Gate, query: FlowQuery, record: z.ZodObject, after: Place | null) {
    this.#gate = gate
    this.#query = query
    this.record = record
    this.#after = after
  }

  /** Where the list goes on; null at its end. */
  get after(): Place | null {
    return this.#isOver ? null : this.#after
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Reads at most `rows` more flows in one statement, perhaps none, and renders them. */
  async next(rows: number, render: Render): Promise<Buffer> {
    const examined = this.examined === 0 ? Math.max(FIRST_EXAMINED, rows) : MAX_EXAMINED
    const bounds = { after: this.#after, rows, examined }
    const found = await readFlows(this.#gate, this.#query, this.record, bounds)
    this.count += found.passed
    this.unstamped += found.unstamped
    this.examined += found.passed + found.unstamped < rows ? examined : rows
    this.#after = found.last
    this.#isOver = found.last === null
    return render(this.record, found, () => readFlowsPlain(this.#gate, this.#query, this.record, bounds))
  }
}
