/**
 * Admission to a fixed set of slots: at most one entrant per slot, the rest in a bounded first-in first-out queue.
 *
 * The driver would queue without bound and pipeline statements behind slow ones; with no more statements than
 * connections it never gets to do either.
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
  /** How often no slot was free on arrival. */
  reached: number
}

export interface GateLimits {
  maxQueue: number
  waitMs: number
}

/** The gate calls one of `admit`, possibly before `enter` returns, and `refuse`. The links are here so that waiting allocates nothing. */
export abstract class Entrant<Slot> {
  previous: Entrant<Slot> | null = null
  next: Entrant<Slot> | null = null
  queued = false
  expiresAt = 0

  abstract admit(slot: Slot): void
  abstract refuse(error: DatabaseUnavailable): void
}

export class SlotGate<Slot> {
  readonly #free: Slot[]
  readonly #slots: number
  readonly #limits: GateLimits
  #head: Entrant<Slot> | null = null
  #tail: Entrant<Slot> | null = null
  #waiting = 0
  #rejected = 0
  #timedOut = 0
  #reached = 0
  #closed = false
  // The head always expires first, since all may wait equally long: one timer serves all.
  #timer: NodeJS.Timeout | null = null

  constructor(slots: readonly Slot[], limits: GateLimits) {
    // The slot freed last is used first: under light load few connections stay warm and the others may go idle.
    this.#free = [...slots].reverse()
    this.#slots = slots.length
    this.#limits = limits
  }

  enter(entrant: Entrant<Slot>): void {
    const slot = this.#closed ? undefined : this.#free.pop()
    if (slot !== undefined) entrant.admit(slot)
    else if (this.#closed) entrant.refuse(new DatabaseUnavailable('shutting down', 'DATABASE_ENDED'))
    else this.#queue(entrant)
  }

  /** Gives a slot back; the longest waiting entrant gets it before this returns. */
  leave(slot: Slot): void {
    const next = this.#head
    if (next === null) {
      this.#free.push(slot)
    } else {
      this.#remove(next)
      next.admit(slot)
    }
  }

  /** Takes an entrant out of the queue without calling it; false when it was not queued. */
  abandon(entrant: Entrant<Slot>): boolean {
    if (!entrant.queued) return false
    this.#remove(entrant)
    return true
  }

  /** Refuses all who wait and all who come. Slots in use stay in use until they leave. */
  close(): void {
    this.#closed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    while (this.#head !== null) {
      const entrant = this.#head
      this.#remove(entrant)
      entrant.refuse(new DatabaseUnavailable('shutting down', 'DATABASE_ENDED'))
    }
  }

  get inFlight(): number {
    return this.#slots - this.#free.length
  }

  get stats(): GateStats {
    return {
      slots: this.#slots,
      inFlight: this.inFlight,
      waiting: this.#waiting,
      rejected: this.#rejected,
      timedOut: this.#timedOut,
      reached: this.#reached,
    }
  }

  #queue(entrant: Entrant<Slot>): void {
    this.#reached++
    if (this.#waiting >= this.#limits.maxQueue) {
      this.#rejected++
      entrant.refuse(new DatabaseUnavailable(`${this.#waiting} statements are already waiting`, 'GATE_FULL'))
    } else this.#append(entrant)
  }

  #append(entrant: Entrant<Slot>): void {
    entrant.queued = true
    entrant.expiresAt = performance.now() + this.#limits.waitMs
    entrant.previous = this.#tail
    if (this.#tail === null) this.#head = entrant
    else this.#tail.next = entrant
    this.#tail = entrant
    this.#waiting++
    this.#arm(this.#limits.waitMs)
  }

  #remove(entrant: Entrant<Slot>): void {
    if (entrant.previous === null) this.#head = entrant.next
    else entrant.previous.next = entrant.next
    if (entrant.next === null) this.#tail = entrant.previous
    else entrant.next.previous = entrant.previous
    entrant.previous = null
    entrant.next = null
    entrant.queued = false
    this.#waiting--
  }

  #arm(ms: number): void {
    // The timer need not keep the process alive: whoever holds a slot does.
    this.#timer ??= setTimeout(() => this.#expire(), ms).unref()
  }

  #expire(): void {
    this.#timer = null
    // Timers may fire a fraction of a millisecond early.
    const now = performance.now() + 1
    while (this.#head !== null && this.#head.expiresAt <= now) {
      const entrant = this.#head
      this.#remove(entrant)
      this.#timedOut++
      entrant.refuse(new DatabaseUnavailable(`waited ${this.#limits.waitMs} ms for a connection`, 'GATE_TIMEOUT'))
    }
    if (this.#head !== null) this.#arm(Math.max(1, this.#head.expiresAt - now))
  }
}
