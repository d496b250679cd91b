/**
 * The connections of one gate, each a driver instance of its own.
 *
 * The driver (postgres 3.4.9) has faults that only matter when it reconnects or pipelines: a connection closed with
 * an unsent write never writes again, a statement given to a connection between its error and its close is never
 * answered, a clean close during startup is retried without pause. So a driver instance here has exactly one
 * connection, carries at most one statement, and is thrown away with its socket; it never gets to reconnect.
 */
import type { Socket } from 'node:net'
import postgres from 'postgres'
import { within } from '../time/within.ts'
import { Connector } from './connector.ts'
import { type DriverQuery, emptied } from './emptied.ts'
import { classify, DatabaseUnavailable, isNoConnection, isTransient } from './errors.ts'
import { SlotGate } from './gate.ts'
import type { PoolOptions, PoolStats } from './pool-options.ts'
import { PendingStatement, type Slot, type Statement } from './statement.ts'

const SWEEPS_PER_DEADLINE = 20
/** A call whose connection is lost later than this gets no second attempt: it would last too long. */
const RETRY_WITHIN_MS = 2_000
const RETRY_JITTER_MS = 15
/** Connections unused for ten rounds are closed. The driver's own idle timeout would set and clear a timer per statement. */
const REAP_EVERY_MS = 60_000
const REAP_AFTER_ROUNDS = 10
const CLOSE_TIMEOUT_SECONDS = 1

export class Pool {
  readonly #options: PoolOptions
  readonly #slots: readonly Slot[]
  readonly #gate: SlotGate<Slot>
  readonly #connector: Connector
  readonly #sweepMs: number
  #sweeper: NodeJS.Timeout | null = null
  #reaper: NodeJS.Timeout | null = null
  // Silence is counted in sweeps, not on the clock: no sweep runs while the event loop is blocked, so answers that
  // wait in the socket meanwhile are not mistaken for silence.
  #sweeps = 0
  #open = 0
  #replaced = 0
  #lost = 0
  #retried = 0
  #isDoubtful = false
  /** Sockets of connections that are being closed. */
  readonly #closing = new Set<Socket>()
  #onEmpty: (() => void) | null = null

  constructor(options: PoolOptions) {
    this.#options = options
    this.#slots = Array.from({ length: options.slots }, () => ({
      driver: null,
      socket: null,
      connectTimer: undefined,
      isAuthenticated: false,
      hasAnswered: false,
      quietRounds: 0,
      pending: null,
    }))
    this.#gate = new SlotGate(this.#slots, options)
    this.#connector = new Connector(options, (slot, driver, failure) => this.#closed(slot, driver, failure))
    this.#sweepMs = Math.max(1, options.deadlineMs / SWEEPS_PER_DEADLINE)
  }

  /** All rows, or with `raw` the first column of the first row as bytes (null when there is none). */
  run<T>(statement: Statement, raw: boolean): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#gate.enter(new PendingStatement(this.#attempt, statement, raw, resolve, reject))
    })
  }

  /** Like `run`, but the caller waits at most `ms`; a connection that has not answered by then is cut, to be free for others. */
  within<T>(ms: number, statement: Statement): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    return new Promise<T>((resolve, reject) => {
      const pending = new PendingStatement(this.#attempt, statement, false, resolve, reject)
      timer = setTimeout(() => {
        if (!this.#gate.abandon(pending)) this.#giveUp(pending)
        reject(new DatabaseUnavailable(`no answer within ${ms} ms`, 'PROBE_TIMEOUT'))
      }, ms)
      this.#gate.enter(pending)
    }).finally(() => clearTimeout(timer))
  }

  /** Like `run`, but the caller waits at most `ms` for its turn, and there is no second attempt. */
  once<T>(ms: number, statement: Statement): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const pending = new PendingStatement(this.#attempt, statement, false, resolve, reject)
      pending.isSingleAttempt = true
      if (!this.#gate.enter(pending)) return
      setTimeout(() => {
        if (this.#gate.abandon(pending))
          reject(new DatabaseUnavailable(`waited ${ms} ms for a connection`, 'GATE_TIMEOUT'))
      }, ms).unref()
    })
  }

  /** Closes the connections without a statement, since the next ones may lead to another server by now. */
  renew(): void {
    for (const slot of this.#slots) if (slot.pending === null) this.#retire(slot)
  }

  get stats(): PoolStats {
    return {
      ...this.#gate.stats,
      open: this.#open,
      idle: this.#slots.reduce((count, slot) => count + (slot.hasAnswered && slot.pending === null ? 1 : 0), 0),
      replaced: this.#replaced,
      lost: this.#lost,
      retried: this.#retried,
      isCutOff: this.#isDoubtful && this.#open === 0,
    }
  }

  /** Refuses new calls, gives those in flight `timeoutMs`, then cuts every connection. Never rejects. */
  async end(timeoutMs: number): Promise<void> {
    this.#gate.close()
    const empty = new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
    this.renew()
    this.#checkEmpty()
    await within(empty, timeoutMs)
    this.#abandonAll(new DatabaseUnavailable('shutting down', 'DATABASE_ENDED'))
    for (const socket of this.#closing) socket.destroy()
    if (this.#sweeper !== null) clearInterval(this.#sweeper)
    if (this.#reaper !== null) clearInterval(this.#reaper)
    this.#sweeper = null
    this.#reaper = null
  }

  /** Makes the first or next attempt of a statement, on the slot that it has. */
  readonly #attempt = (slot: Slot, pending: PendingStatement): void => {
    slot.pending = pending
    slot.quietRounds = 0
    pending.sweeps = this.#sweeps
    this.#sweeper ??= setInterval(() => this.#sweep(), this.#sweepMs).unref()
    let query: PromiseLike<readonly unknown[]>
    try {
      const built = pending.statement(slot.driver ?? this.#connect(slot), pending.isInDoubt)
      query = pending.raw ? (built as postgres.PendingQuery<postgres.Row[]>).raw() : built
    } catch (error) {
      this.#finish(slot)
      pending.reject(error as Error)
      return
    }
    pending.query = query
    query.then(
      (result) => {
        if (pending.query === query) this.#succeed(slot, pending, result)
      },
      (error: unknown) => {
        if (pending.query === query) this.#fail(slot, pending, error)
      },
    )
  }

  #succeed(slot: Slot, pending: PendingStatement, result: readonly unknown[]): void {
    const rows = emptied(pending.query as unknown as DriverQuery, result as unknown[])
    pending.query = null
    this.#markAnswered(slot)
    pending.resolve((pending.raw ? ((rows[0] as (Buffer | null)[] | undefined)?.[0] ?? null) : rows) as never)
    this.#finish(slot)
  }

  #fail(slot: Slot, pending: PendingStatement, error: unknown): void {
    pending.query = null
    if (!slot.hasAnswered) this.#connector.refused(error)
    const problem = classify(error)
    const isLost = isNoConnection(problem)
    if (isLost) {
      this.#lost++
      this.#isDoubtful = true
    }
    if (slot.isAuthenticated && !isOrdinary(error)) pending.isInDoubt = true
    // A connection may hold half a message after anything but an ordinary error of the server, and is not used again.
    if (isLost || !isOrdinary(error)) this.#drop(slot)
    else this.#markAnswered(slot)
    if (this.#mayRetry(pending, problem)) {
      pending.attempts++
      this.#retried++
      setTimeout(
        () => {
          if (slot.pending === pending) this.#attempt(slot, pending)
        },
        1 + Math.random() * RETRY_JITTER_MS * pending.attempts,
      )
      return
    }
    if (problem instanceof DatabaseUnavailable) this.#options.onUnavailable(problem)
    pending.fail(problem)
    this.#finish(slot)
  }

  #giveUp(pending: PendingStatement): void {
    const slot = this.#slots.find((one) => one.pending === pending)
    if (slot === undefined) return
    pending.query = null
    this.#isDoubtful = true
    this.#drop(slot)
    this.#finish(slot)
  }

  #mayRetry(pending: PendingStatement, problem: Error): boolean {
    if (pending.isSingleAttempt || pending.attempts >= this.#options.retries || !isTransient(problem)) return false
    return !(problem instanceof DatabaseUnavailable) || performance.now() - pending.startedAt < RETRY_WITHIN_MS
  }

  #finish(slot: Slot): void {
    slot.pending = null
    if (this.#onEmpty !== null) this.#retire(slot)
    this.#gate.leave(slot)
    if (this.#onEmpty !== null) this.#checkEmpty()
  }

  #connect(slot: Slot): postgres.Sql {
    this.#reaper ??= setInterval(() => this.#reap(), REAP_EVERY_MS).unref()
    return this.#connector.open(slot)
  }

  /** The driver says its connection is gone, with or without a statement under way. Must not throw: nobody would catch it. */
  #closed(slot: Slot, driver: postgres.Sql, failure: unknown): void {
    if (slot.driver !== driver) return
    this.#drop(slot)
    if (slot.pending?.query) this.#fail(slot, slot.pending, failure)
    this.#checkEmpty()
  }

  #markAnswered(slot: Slot): void {
    if (slot.hasAnswered) return
    this.#isDoubtful = false
    slot.hasAnswered = true
    this.#open++
  }

  /** Cuts the connection of a slot; the loss of the last one renews the pool, since the next may lead to another server. */
  #drop(slot: Slot): void {
    if (this.#cut(slot) && this.#open === 0) this.#options.onRenewed()
  }

  #cut(slot: Slot): boolean {
    slot.socket?.destroy()
    return this.#detach(slot)
  }

  #detach(slot: Slot): boolean {
    const { hasAnswered } = slot
    clearTimeout(slot.connectTimer)
    slot.socket = null
    slot.driver = null
    slot.hasAnswered = false
    if (hasAnswered) this.#open--
    return hasAnswered
  }

  #sweep(): void {
    this.#sweeps++
    let isBusy = false
    for (const { pending } of this.#slots) {
      if (pending === null) continue
      isBusy = true
      if (pending.query !== null && this.#sweeps - pending.sweeps > SWEEPS_PER_DEADLINE) {
        this.#replace()
        return
      }
    }
    if (!isBusy && this.#sweeper !== null) {
      clearInterval(this.#sweeper)
      this.#sweeper = null
    }
  }

  #replace(): void {
    const { gate, deadlineMs, log, onRenewed } = this.#options
    this.#replaced++
    log.warn({ gate, deadlineMs, inFlight: this.#gate.inFlight }, 'database went silent: pool replaced')
    const waiting = this.#slots.filter((slot) => slot.pending?.query)
    for (const slot of this.#slots) this.#cut(slot)
    this.#isDoubtful = true
    onRenewed()
    for (const { pending, isAuthenticated } of waiting) {
      pending!.query = null
      if (isAuthenticated) pending!.isInDoubt = true
      pending!.fail(new DatabaseUnavailable(`no answer for ${deadlineMs} ms`, 'POOL_REPLACED'))
    }
    // A slot that is freed takes the next statement at once, and that one is not lost: so this comes last.
    for (const slot of waiting) this.#finish(slot)
  }

  #reap(): void {
    let isLast = false
    for (const slot of this.#slots) {
      if (slot.pending === null && ++slot.quietRounds > REAP_AFTER_ROUNDS)
        isLast = this.#retire(slot) && this.#open === 0
    }
    if (isLast) this.#options.onRenewed()
  }

  #abandonAll(error: DatabaseUnavailable): void {
    for (const slot of this.#slots) {
      const { pending } = slot
      this.#cut(slot)
      if (pending === null) continue
      pending.query = null
      pending.reject(error)
      slot.pending = null
      this.#gate.leave(slot)
    }
  }

  /** Closes an unused connection in good order; its slot may connect anew at once. True when it had answered. */
  #retire(slot: Slot): boolean {
    const { driver, socket } = slot
    if (driver === null) return false
    if (socket === null) return this.#detach(slot)
    this.#closing.add(socket)
    const gone = () => {
      socket.destroy()
      this.#closing.delete(socket)
      this.#checkEmpty()
    }
    driver.end({ timeout: CLOSE_TIMEOUT_SECONDS }).then(gone, gone)
    return this.#detach(slot)
  }

  #checkEmpty(): void {
    if (this.#onEmpty === null || this.#closing.size > 0) return
    if (this.#slots.every((slot) => slot.driver === null && slot.pending === null)) this.#onEmpty()
  }
}

function isOrdinary(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.severity === 'ERROR'
}
