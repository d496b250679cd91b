/** Reads a list of flows to its end, or to a limit, in bounded memory. */
import type { z } from 'zod'
import type { Gate } from '../db/index.ts'
import type { Render } from './forms.ts'
import { type FlowQuery, type Place, readFlows, readFlowsPlain } from './read.ts'
import { readReporters } from './reporters.ts'

/**
 * Flows that the first statement of a list examines, and each further one. A filter is rare where the first one finds
 * fewer than one of `rare` flows that are wanted.
 */
const EXAMINED = { first: 10_000, next: 50_000, rare: 10 }
/** Statements that are faster examine more flows of each pod the next time, slower ones fewer. */
const FAST_MS = 50
const SLOW_MS = 200

export class FlowList {
  readonly record: z.ZodObject
  readonly #gate: Gate
  readonly #examined: typeof EXAMINED
  #query: FlowQuery
  #after: Place | null
  #isOver = false
  /** The range of the list where only its newest part is read by pods. */
  #older: FlowQuery | null = null
  /** Flows of each pod that a statement examines. */
  #ofEachPod = 1
  /** Flows read, those left out as unknown, and those examined at most. */
  count = 0
  unstamped = 0
  examined = 0

  constructor(gate: Gate, query: FlowQuery, record: z.ZodObject, after: Place | null, examined = EXAMINED) {
    this.#gate = gate
    this.#examined = examined
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

  /**
   * Reads at most `rows` more flows in one statement, perhaps none, and renders them. Where the first statement found
   * few, the filter is rare, and the others read by pods.
   */
  async next(rows: number, render: Render): Promise<Buffer> {
    const isFirst = this.examined === 0
    const examined = isFirst ? Math.max(this.#examined.first, rows) : this.#examined.next
    const query = this.#query
    const bounds = { after: this.#after, rows, examined: query.pods === undefined ? examined : this.#ofEachPod }
    const startedAt = performance.now()
    const found = await readFlows(this.#gate, query, this.record, bounds)
    this.#adapt(performance.now() - startedAt)
    const isShort = found.passed + found.unstamped < rows
    this.count += found.passed
    this.unstamped += found.unstamped
    this.examined += isShort ? examined : rows
    this.#after = found.last
    if (found.last === null) this.#goOnWithOlder()
    else if (isFirst && (found.passed + found.unstamped) * this.#examined.rare < rows) await this.#readByPods()
    return render(this.record, found, () => readFlowsPlain(this.#gate, query, this.record, bounds))
  }

  /** A busy pod among many idle ones is read in large steps, many busy ones in small steps. */
  #adapt(tookMs: number): void {
    if (tookMs < FAST_MS) this.#ofEachPod = Math.min(this.#ofEachPod * 2, this.#examined.next)
    else if (tookMs > SLOW_MS) this.#ofEachPod = Math.ceil(this.#ofEachPod / 2)
  }

  async #readByPods(): Promise<void> {
    const reporters = await readReporters(this.#gate, this.#query, this.#after)
    if (reporters === null) return
    const { pods, since, hasOlder } = reporters
    this.#ofEachPod = Math.ceil(this.#examined.next / Math.max(pods.length, 1))
    if (hasOlder) this.#older = this.#query
    this.#query = { ...this.#query, since: hasOlder ? since : this.#query.since, pods }
  }

  #goOnWithOlder(): void {
    if (this.#older === null) {
      this.#isOver = true
      return
    }
    this.#after = { time: this.#query.since, uuid: '' }
    this.#query = this.#older
    this.#older = null
  }
}
