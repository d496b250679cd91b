import { HttpError } from './errors.ts'

export const KIB = 1_024

/** A small read costs no more than this, nor more than one part in so many of the whole budget. */
const SMALL_KIB = 1_024
const SMALL_PART = 64
/** Small reads that have passed a large one and are not done yet hold no more than one part in so many. */
const PASSING_PART = 8

interface Waiter {
  readonly kib: number
  /** Its place in the line: the lower, the longer it waits. */
  readonly arrival: number
  readonly grant: () => void
}

/**
 * The memory that list routes may hold at once (interop-core 6.1). Each charges its worst case before its statement runs, then what it
 * really holds; what does not fit waits in line and is shed with 503 when its turn does not come in time. A list is whole or shed,
 * never cut.
 *
 * First come, first served, but a small read may pass a large one that has to wait for others anyway. It may no longer as soon as those
 * that have passed are all that is in the way: a large read waits for what was held when it came to the head of the line and for the
 * few that have passed by then, however many small ones keep coming.
 */
export class ReadBudget {
  readonly totalKib: number
  readonly #waitMs: number
  readonly #smallKib: number
  readonly #passingKib: number
  readonly #refusal: (kib: number, totalKib: number) => string
  /** In the order of their arrival, as a set keeps it. */
  readonly #large = new Set<Waiter>()
  readonly #small = new Set<Waiter>()
  #arrivals = 0
  #availableKib: number
  /** The part of what is held that small reads hold which have passed a large one. */
  #passedKib = 0
  #shed = 0

  constructor(options: { totalKib: number; waitMs: number; refusal?: (kib: number, totalKib: number) => string }) {
    this.totalKib = options.totalKib
    this.#availableKib = options.totalKib
    this.#waitMs = options.waitMs
    this.#smallKib = Math.min(SMALL_KIB, Math.floor(options.totalKib / SMALL_PART))
    this.#passingKib = Math.floor(options.totalKib / PASSING_PART)
    this.#refusal = options.refusal ?? readRefusal
  }

  get availableKib(): number {
    return this.#availableKib
  }

  get waiting(): number {
    return this.#large.size + this.#small.size
  }

  get shed(): number {
    return this.#shed
  }

  /** Takes `kib` like `enter`, to be given back as a whole. Resolves to its release, callable once. */
  acquire(kib: number): Promise<() => void> | (() => void) {
    const share = this.enter(kib)
    return share instanceof Promise ? share.then(({ release }) => release) : share.release
  }

  /** Takes `kib` (at least 1, at most the total: a read over the total runs alone). Rejects with 503 when that takes too long. */
  enter(kib: number): Promise<Share> | Share {
    const cost = this.#cost(kib)
    const isPassing = this.#mayEnter(cost)
    if (isPassing !== null) return new Share(this, this.#take(cost, isPassing), cost)
    if (this.#waitMs === 0) throw this.#refuse(cost)
    return new Promise((resolve, reject) => {
      const leave = this.#queue(cost, (part) => {
        clearTimeout(expires)
        resolve(new Share(this, part, cost))
      })
      const expires = setTimeout(() => {
        // Told first: others may be let in when this one leaves.
        reject(this.#refuse(cost))
        leave()
      }, this.#waitMs).unref()
    })
  }

  /**
   * Takes `kib` for one that was let in already and holds nothing now. It waits as long as it must, since it cannot be shed any more; what
   * is returned ends the wait. `granted` may be called before this returns.
   */
  reenter(kib: number, granted: (part: Part) => void): () => void {
    const cost = this.#cost(kib)
    const isPassing = this.#mayEnter(cost)
    if (isPassing === null) return this.#queue(cost, granted)
    granted(this.#take(cost, isPassing))
    return () => {}
  }

  #cost(kib: number): number {
    return Math.min(Math.max(1, Math.ceil(kib)), this.totalKib)
  }

  #isSmall(kib: number): boolean {
    return kib <= this.#smallKib
  }

  /** Null for one that has to wait, else whether it passes another. */
  #mayEnter(kib: number): boolean | null {
    if (this.waiting === 0) return kib <= this.#availableKib ? false : null
    const large = first(this.#large)
    return large && this.#small.size === 0 && this.#isSmall(kib) && this.#mayPass(kib, large) ? true : null
  }

  #mayPass(kib: number, large: Waiter): boolean {
    const inTheWay = large.kib - this.#availableKib
    return kib <= this.#availableKib && this.#passedKib < inTheWay && this.#passedKib + kib <= this.#passingKib
  }

  #take(kib: number, isPassing: boolean): Part {
    this.#availableKib -= kib
    if (isPassing) this.#passedKib += kib
    let held = kib
    return (less) => {
      const freed = Math.min(held, less)
      if (freed <= 0) return
      held -= freed
      this.#availableKib += freed
      if (isPassing) this.#passedKib -= freed
      this.#serve()
    }
  }

  #queue(kib: number, granted: (part: Part) => void): () => void {
    const line = this.#isSmall(kib) ? this.#small : this.#large
    const waiter: Waiter = {
      kib,
      arrival: this.#arrivals++,
      grant: () => granted(this.#take(kib, line === this.#small && this.#isPassing(waiter))),
    }
    line.add(waiter)
    return () => {
      if (line.delete(waiter)) this.#serve()
    }
  }

  #isPassing({ arrival }: Waiter): boolean {
    const large = first(this.#large)
    return large !== undefined && large.arrival < arrival
  }

  #serve(): void {
    for (;;) {
      const large = first(this.#large)
      const small = first(this.#small)
      const isSmallNext = small !== undefined && (large === undefined || small.arrival < large.arrival)
      const next = isSmallNext ? small : large
      if (next && next.kib <= this.#availableKib) this.#admit(next)
      else if (!isSmallNext && small && this.#mayPass(small.kib, large!)) this.#admit(small)
      else return
    }
  }

  #admit(waiter: Waiter): void {
    ;(this.#isSmall(waiter.kib) ? this.#small : this.#large).delete(waiter)
    waiter.grant()
  }

  #refuse(kib: number): HttpError {
    this.#shed += 1
    return new HttpError(503, this.#refusal(kib, this.totalKib), { 'retry-after': '1' })
  }
}

/** Gives so many KiB of what was taken back. */
type Part = (less: number) => void

/** What one reader holds of the budget: it shrinks as memory is freed, and grows again for a next page. */
export class Share {
  readonly #budget: ReadBudget
  #giveBack: Part
  #kib: number
  #isReleased = false
  #leaveLine = () => {}
  #goOn = () => {}

  constructor(budget: ReadBudget, giveBack: Part, kib: number) {
    this.#budget = budget
    this.#giveBack = giveBack
    this.#kib = kib
  }

  get kib(): number {
    return this.#kib
  }

  /** Gives back all but what so many bytes need; never takes more. */
  keep(bytes: number): void {
    const less = this.#kib - Math.ceil(bytes / KIB)
    if (less <= 0) return
    this.#kib -= less
    this.#giveBack(less)
  }

  /**
   * Gives back what is held, and waits until `kib` are held instead, however long that takes: who holds nothing while waiting cannot keep
   * others from ending. Resolves without them when all was released meanwhile.
   */
  async renew(kib: number): Promise<void> {
    this.keep(0)
    if (this.#isReleased) return
    await new Promise<void>((resolve) => {
      this.#goOn = resolve
      const cost = Math.min(kib, this.#budget.totalKib)
      this.#leaveLine = this.#budget.reenter(cost, (part) => {
        this.#giveBack = part
        this.#kib = cost
        resolve()
      })
    })
  }

  /** Gives back everything, for good. */
  readonly release = (): void => {
    this.#isReleased = true
    this.#leaveLine()
    this.keep(0)
    this.#goOn()
  }
}

const first = (line: Set<Waiter>): Waiter | undefined => line.values().next().value

// Clients look for both phrases.
const readRefusal = (kib: number, totalKib: number) =>
  `read memory budget exhausted: the read needs ${kib} KiB of a ${totalKib} KiB budget; retry in a moment`
