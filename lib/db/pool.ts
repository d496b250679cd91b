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
import { within } from '../within.ts'
import { Connector } from './connector.ts'
import { type DriverQuery, emptied } from './emptied.ts'
import { classify, DatabaseUnavailable, isNoConnection, isTransient } from './errors.ts'
import { Flight, type Slot, type Statement } from './flight.ts'
import { SlotGate } from './gate.ts'
import type { PoolOptions, PoolStats } from './pool-options.ts'

const SWEEPS_PER_DEADLINE = 20
/** A connection lost later than this into a call is not worth a second attempt: the call would last too long. */
const RETRY_WITHIN_MS = 2_000
const RETRY_JITTER_MS = 15
/** Connections unused for ten rounds are closed. The driver's own idle timeout would set and clear a timer per statement. */
const REAP_EVERY_MS = 60_000
const REAP_AFTER_ROUNDS = 10
const GOODBYE_SECONDS = 1

export class Pool {
  readonly #options: PoolOptions
  readonly #slots: readonly Slot[]
  readonly #gate: SlotGate<Slot>
  readonly #connector: Connector
  readonly #sweepMs: number
  #sweeper: NodeJS.Timeout | null = null
  #reaper: NodeJS.Timeout | null = null
  // Silence is counted in sweeps, not on the clock: while the event loop is blocked no sweep runs, and answers that
  // already lie in the socket are not mistaken for silence.
  #sweeps = 0
  #open = 0
  #replaced = 0
  #lost = 0
  #retried = 0
  #isDoubtful = false
  /** Sockets of connections that have been told to end. */
  readonly #leaving = new Set<Socket>()
  #onEmpty: (() => void) | null = null

  constructor(options: PoolOptions) {
    this.#options = options
    this.#slots = Array.from({ length: options.slots }, () => ({
      driver: null,
      socket: null,
      greeting: undefined,
      isLetIn: false,
      proven: false,
      quietRounds: 0,
      flight: null,
    }))
    this.#gate = new SlotGate(this.#slots, options)
    this.#connector = new Connector(options, (slot, driver, failure) => this.#closed(slot, driver, failure))
    this.#sweepMs = Math.max(1, options.deadlineMs / SWEEPS_PER_DEADLINE)
  }

  /** All rows, or with `raw` the first column of the first row as bytes (null when there is none). */
  run<T>(statement: Statement, raw: boolean): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#gate.enter(new Flight(this.#launch, statement, raw, resolve, reject))
    })
  }

  /** Like `run`, but the caller waits at most `ms`; the connection that has not answered by then is cut, to stand in nobody's way. */
  within<T>(ms: number, statement: Statement): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const done = (error: Error) => {
        clearTimeout(timer)
        reject(error)
      }
      const answer = (value: T) => {
        clearTimeout(timer)
        resolve(value)
      }
      const flight = new Flight(this.#launch, statement, false, answer, done)
      const timer = setTimeout(() => {
        if (!this.#gate.abandon(flight)) this.#giveUp(flight)
        reject(new DatabaseUnavailable(`no answer within ${ms} ms`, 'PROBE_TIMEOUT'))
      }, ms)
      this.#gate.enter(flight)
    })
  }

  /** Like `run`, but the caller waits at most `ms` for its turn, and there is no second attempt. */
  once<T>(ms: number, statement: Statement): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const flight = new Flight(this.#launch, statement, false, resolve, reject)
      flight.isAbandoned = true
      this.#gate.enter(flight)
      if (!flight.queued) return
      setTimeout(() => {
        if (this.#gate.abandon(flight)) reject(new DatabaseUnavailable(`waited ${ms} ms for a connection`, 'GATE_TIMEOUT'))
      }, ms).unref()
    })
  }

  /** Parts with the connections that carry no statement, for what they led to may be another server by now. */
  renew(): void {
    for (const slot of this.#slots) if (slot.flight === null) this.#retire(slot)
  }

  get stats(): PoolStats {
    return {
      ...this.#gate.stats,
      open: this.#open,
      idle: this.#slots.reduce((count, slot) => count + (slot.proven && slot.flight === null ? 1 : 0), 0),
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
    for (const socket of this.#leaving) socket.destroy()
    if (this.#sweeper !== null) clearInterval(this.#sweeper)
    if (this.#reaper !== null) clearInterval(this.#reaper)
    this.#sweeper = null
    this.#reaper = null
  }

  /** First or next attempt of a flight on a slot that is its own. */
  readonly #launch = (slot: Slot, flight: Flight): void => {
    slot.flight = flight
    slot.quietRounds = 0
    flight.sweeps = this.#sweeps
    this.#sweeper ??= setInterval(() => this.#sweep(), this.#sweepMs).unref()
    let query: PromiseLike<readonly unknown[]>
    try {
      const pending = flight.statement(slot.driver ?? this.#connect(slot), flight.isInDoubt)
      query = flight.raw ? (pending as postgres.PendingQuery<postgres.Row[]>).raw() : pending
    } catch (error) {
      this.#finish(slot)
      flight.reject(error as Error)
      return
    }
    flight.query = query
    query.then(
      (result) => {
        if (flight.query === query) this.#succeed(slot, flight, result)
      },
      (error: unknown) => {
        if (flight.query === query) this.#fail(slot, flight, error)
      },
    )
  }

  #succeed(slot: Slot, flight: Flight, result: readonly unknown[]): void {
    const rows = emptied(flight.query as unknown as DriverQuery, result as unknown[])
    flight.query = null
    this.#prove(slot)
    flight.resolve((flight.raw ? ((rows[0] as (Buffer | null)[] | undefined)?.[0] ?? null) : rows) as never)
    this.#finish(slot)
  }

  #fail(slot: Slot, flight: Flight, error: unknown): void {
    flight.query = null
    if (!slot.proven) this.#connector.refused(error)
    const problem = classify(error)
    const isLost = isNoConnection(problem)
    if (isLost) {
      this.#lost++
      this.#isDoubtful = true
    }
    if (slot.isLetIn && !isOrdinary(error)) flight.isInDoubt = true
    // After anything but an ordinary error of the server the connection may hold half a message: not one to reuse.
    if (isLost || !isOrdinary(error)) this.#drop(slot)
    else this.#prove(slot)
    if (this.#mayRetry(flight, problem)) {
      flight.attempts++
      this.#retried++
      setTimeout(
        () => {
          if (slot.flight === flight) this.#launch(slot, flight)
        },
        1 + Math.random() * RETRY_JITTER_MS * flight.attempts,
      )
      return
    }
    if (problem instanceof DatabaseUnavailable) this.#options.onUnavailable(problem)
    flight.fail(problem)
    this.#finish(slot)
  }

  #giveUp(flight: Flight): void {
    const slot = this.#slots.find((one) => one.flight === flight)
    if (slot === undefined) return
    flight.query = null
    this.#isDoubtful = true
    this.#drop(slot)
    this.#finish(slot)
  }

  #mayRetry(flight: Flight, problem: Error): boolean {
    if (flight.isAbandoned || flight.attempts >= this.#options.retries || !isTransient(problem)) return false
    return !(problem instanceof DatabaseUnavailable) || performance.now() - flight.startedAt < RETRY_WITHIN_MS
  }

  #finish(slot: Slot): void {
    slot.flight = null
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
    if (slot.flight?.query) this.#fail(slot, slot.flight, failure)
    this.#checkEmpty()
  }

  #prove(slot: Slot): void {
    if (slot.proven) return
    this.#isDoubtful = false
    slot.proven = true
    this.#open++
  }

  /** Forgets the connection of a slot; the last one to go renews the pool, since the next may lead to another server. */
  #drop(slot: Slot): void {
    if (this.#cut(slot) && this.#open === 0) this.#options.onRenewed()
  }

  #cut(slot: Slot): boolean {
    slot.socket?.destroy()
    return this.#detach(slot)
  }

  #detach(slot: Slot): boolean {
    const { proven } = slot
    clearTimeout(slot.greeting)
    slot.socket = null
    slot.driver = null
    slot.proven = false
    if (proven) this.#open--
    return proven
  }

  #sweep(): void {
    this.#sweeps++
    let flying = false
    for (const { flight } of this.#slots) {
      if (flight === null) continue
      flying = true
      if (flight.query !== null && this.#sweeps - flight.sweeps > SWEEPS_PER_DEADLINE) {
        this.#replace()
        return
      }
    }
    if (!flying && this.#sweeper !== null) {
      clearInterval(this.#sweeper)
      this.#sweeper = null
    }
  }

  #replace(): void {
    const { gate, deadlineMs, log, onRenewed } = this.#options
    this.#replaced++
    log.warn({ gate, deadlineMs, inFlight: this.#gate.inFlight }, 'database went silent: pool replaced')
    const waiting = this.#slots.filter((slot) => slot.flight?.query)
    for (const slot of this.#slots) this.#cut(slot)
    this.#isDoubtful = true
    onRenewed()
    for (const { flight, isLetIn } of waiting) {
      flight!.query = null
      if (isLetIn) flight!.isInDoubt = true
      flight!.fail(new DatabaseUnavailable(`no answer for ${deadlineMs} ms`, 'POOL_REPLACED'))
    }
    // Only now: a slot that is freed takes the next statement at once, and that one is not lost.
    for (const slot of waiting) this.#finish(slot)
  }

  #reap(): void {
    let isLast = false
    for (const slot of this.#slots) {
      if (slot.flight === null && ++slot.quietRounds > REAP_AFTER_ROUNDS) isLast = this.#retire(slot) && this.#open === 0
    }
    if (isLast) this.#options.onRenewed()
  }

  #abandonAll(error: DatabaseUnavailable): void {
    for (const slot of this.#slots) {
      const { flight } = slot
      this.#cut(slot)
      if (flight === null) continue
      flight.query = null
      flight.reject(error)
      slot.flight = null
      this.#gate.leave(slot)
    }
  }

  /** Parts with an unused connection politely; its slot may connect anew at once. True when it had answered. */
  #retire(slot: Slot): boolean {
    const { driver, socket } = slot
    if (driver === null) return false
    if (socket === null) return this.#detach(slot)
    this.#leaving.add(socket)
    const gone = () => {
      socket.destroy()
      this.#leaving.delete(socket)
      this.#checkEmpty()
    }
    driver.end({ timeout: GOODBYE_SECONDS }).then(gone, gone)
    return this.#detach(slot)
  }

  #checkEmpty(): void {
    if (this.#onEmpty === null || this.#leaving.size > 0) return
    if (this.#slots.every((slot) => slot.driver === null && slot.flight === null)) this.#onEmpty()
  }
}

function isOrdinary(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.severity === 'ERROR'
}
