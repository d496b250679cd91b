/**
 * The connections of one gate, each a driver instance of its own.
 *
 * The driver (postgres 3.4.9) has faults that matter only when it reconnects or pipelines: a connection that is closed
 * with an unsent write never writes again, a statement given to a connection between its error and its close is never
 * answered, and a clean close during startup is retried without a pause. Therefore each driver instance has exactly one
 * connection, carries at most one statement, and is dropped with its socket; it never reconnects.
 */
import type { Socket } from 'node:net'
import postgres from 'postgres'
import { within } from '../time/within.ts'
import { Connector, type Target } from './connector.ts'
import { classify, DatabaseUnavailable, isNoConnection, isTransient } from './errors.ts'
import { type GateLimits, type GateStats, SlotGate } from './gate.ts'
import { PendingStatement, type Slot, type Statement, takeRows } from './statement.ts'

export interface PoolOptions extends GateLimits, Target {
  slots: number
  /** A statement silent for this long means the pool is lost. */
  deadlineMs: number
  /** Further attempts after a deadlock, a serialization failure or a lost connection. */
  retries: number
  /** The pool was replaced, or its last connection was lost. Must not throw. */
  onRenewed: () => void
  /** A statement failed for a reason other than its own fault. Must not throw. */
  onUnavailable: (error: DatabaseUnavailable) => void
}

export interface PoolStats extends GateStats {
  /** Connections that have answered at least once and still stand. */
  open: number
  idle: number
  /** Times that a silent statement cost the whole pool. */
  replaced: number
  /** Attempts that failed for lack of a connection. */
  lost: number
  retried: number
  /**
   * No connection stands, and the last one was lost or refused. Only a statement can find out whether one is available.
   */
  isCutOff: boolean
}

const SWEEPS_PER_DEADLINE = 20
/** A call whose connection is lost later than this gets no second attempt, because it would take too long. */
const RETRY_WITHIN_MS = 2_000
const RETRY_JITTER_MS = 15
/**
 * Connections unused for ten rounds are closed. The driver's own idle timeout would set and clear a timer per
 * statement.
 */
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
  // Silence is counted in sweeps, not by the clock: no sweep runs while the event loop is blocked, so an answer that
  // waits in the socket meanwhile is not taken for silence.
  #sweeps = 0
  #open = 0
  #replaced = 0
  #lost = 0
  #retried = 0
  #mayBeCutOff = false
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

  /**
   * Like `run`, but the caller waits at most `ms`; a connection that has not answered by then is cut, to free its slot.
   */
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

  /** Like `run`, but with a single attempt, and the caller waits at most `ms` for a slot. */
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

  /** Closes the connections without a statement: new ones may reach another server by now. */
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
      isCutOff: this.#mayBeCutOff && this.#open === 0,
    }
  }

  /** Refuses new calls, waits up to `timeoutMs` for those in flight, then cuts every connection. Never rejects. */
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

  /** Makes the first or the next attempt of a statement on its slot. */
  readonly #attempt = (slot: Slot, pending: PendingStatement): void => {
    slot.pending = pending
    slot.quietRounds = 0
    pending.sweeps = this.#sweeps
    this.#sweeper ??= setInterval(() => this.#sweep(), this.#sweepMs).unref()
    let query: PromiseLike<readonly unknown[]>
    try {
      const built = pending.statement(slot.driver ?? this.#connect(slot), pending.isOutcomeUnknown)
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
    const rows = takeRows(pending.query, result as unknown[])
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
      this.#mayBeCutOff = true
    }
    if (slot.isAuthenticated && !isOrdinary(error)) pending.isOutcomeUnknown = true
    // After anything but an ordinary error of the server, a connection may hold half a message and is not used again.
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
    this.#mayBeCutOff = true
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

  /**
   * The driver reports that its connection is gone, with or without a statement in flight. Must not throw: nobody would
   * catch it.
   */
  #closed(slot: Slot, driver: postgres.Sql, failure: unknown): void {
    if (slot.driver !== driver) return
    this.#drop(slot)
    if (slot.pending?.query) this.#fail(slot, slot.pending, failure)
    this.#checkEmpty()
  }

  #markAnswered(slot: Slot): void {
    if (slot.hasAnswered) return
    this.#mayBeCutOff = false
    slot.hasAnswered = true
    this.#open++
  }

  /** Cuts the connection of a slot. The loss of the last one renews the pool: the next may reach another server. */
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
    this.#mayBeCutOff = true
    onRenewed()
    for (const { pending, isAuthenticated } of waiting) {
      pending!.query = null
      if (isAuthenticated) pending!.isOutcomeUnknown = true
      pending!.fail(new DatabaseUnavailable(`no answer for ${deadlineMs} ms`, 'POOL_REPLACED'))
    }
    // Last, because a freed slot takes the next statement at once, and that one is not lost.
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

  /** Closes an unused connection in an orderly way; its slot may connect again at once. True when it had answered. */
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
