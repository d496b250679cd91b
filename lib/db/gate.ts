/**
 * Admission to a fixed set of slots: at most one entrant per slot, the rest in a bounded first-in first-out queue.
 *
 * The driver would queue without a bound and pipeline statements behind slow ones. With no more statements than
 * connections it does neither.
 */
import { DatabaseUnavailable } from './errors.ts'

export type GateName = 'ingest' | 'read' | 'probe' | 'job'

export interface GateStats {
  slots: number
  inFlight: number
  waiting: number
  /** Refused at once: the queue was full. */
  rejected: number
  /** Refused after `waitMs` in the queue. */
  timedOut: number
  /** Arrivals that found no free slot. */
  reached: number
}

export interface GateLimits {
  maxQueue: number
  waitMs: number
}

/** The gate calls either `admit`, possibly before `enter` returns, or `refuse`. */
export abstract class Entrant<Slot> {
  expiresAt = 0

  abstract admit(slot: Slot): void
  abstract refuse(error: DatabaseUnavailable): void
}

export class SlotGate<Slot> {
  readonly #free: Slot[]
  readonly #slots: number
  readonly #limits: GateLimits
  /** A set keeps the order of arrival. */
  readonly #waiting = new Set<Entrant<Slot>>()
  #rejected = 0
  #timedOut = 0
  #reached = 0
  #closed = false
  // One timer serves all: every entrant may wait equally long, so the one that came first expires first.
  #timer: NodeJS.Timeout | null = null

  constructor(slots: readonly Slot[], limits: GateLimits) {
    // The slot freed last is used first: under light load few connections stay in use, and the others may be closed.
    this.#free = [...slots].reverse()
    this.#slots = slots.length
    this.#limits = limits
  }

  /** Returns whether the entrant waits. */
  enter(entrant: Entrant<Slot>): boolean {
    const slot = this.#closed ? undefined : this.#free.pop()
    if (slot !== undefined) entrant.admit(slot)
    else if (this.#closed) entrant.refuse(shuttingDown())
    else return this.#queue(entrant)
    return false
  }

  /** Gives a slot back; the longest waiting entrant gets it before this returns. */
  leave(slot: Slot): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next)
      next.admit(slot)
      return
    }
    this.#free.push(slot)
  }

  /** Takes an entrant out of the queue without calling it; false when it was not queued. */
  abandon(entrant: Entrant<Slot>): boolean {
    return this.#waiting.delete(entrant)
  }

  /** Refuses all waiting and all new entrants. Slots in use stay in use until they are given back. */
  close(): void {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    for (const entrant of this.#waiting) {
      this.#waiting.delete(entrant)
      entrant.refuse(shuttingDown())
    }
  }

  get inFlight(): number {
    return this.#slots - this.#free.length
  }

  get stats(): GateStats {
    return {
      slots: this.#slots,
      inFlight: this.inFlight,
      waiting: this.#waiting.size,
      rejected: this.#rejected,
      timedOut: this.#timedOut,
      reached: this.#reached,
    }
  }

  #queue(entrant: Entrant<Slot>): boolean {
    this.#reached++
    const { size } = this.#waiting
    if (size >= this.#limits.maxQueue) {
      this.#rejected++
      entrant.refuse(new DatabaseUnavailable(`${size} statements are already waiting`, 'GATE_FULL'))
      return false
    }
    entrant.expiresAt = performance.now() + this.#limits.waitMs
    this.#waiting.add(entrant)
    this.#arm(this.#limits.waitMs)
    return true
  }

  #arm(ms: number): void {
    // The holders of slots keep the process alive; the timer need not.
    this.#timer ??= setTimeout(() => this.#expire(), ms).unref()
  }

  #expire(): void {
    this.#timer = null
    // Timers may fire a fraction of a millisecond early.
    const now = performance.now() + 1
    for (const entrant of this.#waiting) {
      if (entrant.expiresAt > now) {
        this.#arm(Math.max(1, entrant.expiresAt - now))
        return
      }
      this.#waiting.delete(entrant)
      this.#timedOut++
      entrant.refuse(new DatabaseUnavailable(`waited ${this.#limits.waitMs} ms for a connection`, 'GATE_TIMEOUT'))
    }
  }
}

const shuttingDown = () => new DatabaseUnavailable('shutting down', 'DATABASE_ENDED')
