import { HttpError } from '../http/errors.ts'

export const KIB = 1_024

/** A read may pass one that waits for at least so many times as much. */
const MUCH_TIMES = 4
/** Reads that have passed another and are not done yet hold no more than one part in so many of the whole budget. */
const PASSING_PART = 2
/** A read that grows takes so much more at a time, at least. */
const STEP_KIB = 4 * 1_024

interface Waiter {
  readonly kib: number
  /** Takes it. */
  readonly grant: (isPassing: boolean) => void
}

interface Grower extends Waiter {
  readonly share: Share
}

/**
 * The memory that list routes may hold at once (interop-core 6.1). Each charges its worst case before its statement
 * runs, then what it really holds; one whose worst case is far above the usual one begins with the usual one and takes
 * more in steps. What does not fit waits in line and is shed with 503 when its turn does not come in time. A list is
 * whole or shed, never cut.
 *
 * First come, first served, but a read for little may pass one for much that has to wait for others anyway. It may no
 * longer as soon as those that have passed are all that is in the way: a large read waits for what was held when it
 * came to the head of the line and for the few that have passed by then, however many small ones keep coming.
 *
 * A read that grows holds memory while it waits for more. Two of them could wait for each other, so one at a time
 * grows, until it is done, and it comes before all that hold nothing yet.
 */
export class MemoryBudget {
  readonly totalKib: number
  readonly #waitMs: number
  readonly #passingKib: number
  readonly #refusal: (kib: number, totalKib: number) => string
  /** In the order of their arrival, as a set keeps it. */
  readonly #line = new Set<Waiter>()
  readonly #growers = new Set<Grower>()
  #growing: Share | null = null
  #availableKib: number
  /** The part of what is held that reads hold which have passed another. */
  #passedKib = 0
  #shed = 0

  constructor(options: { totalKib: number; waitMs: number; refusal?: (kib: number, totalKib: number) => string }) {
    this.totalKib = options.totalKib
    this.#availableKib = options.totalKib
    this.#waitMs = options.waitMs
    this.#passingKib = Math.floor(options.totalKib / PASSING_PART)
    this.#refusal = options.refusal ?? readRefusal
  }

  get availableKib(): number {
    return this.#availableKib
  }

  get waiting(): number {
    return this.#line.size + this.#growers.size
  }

  get shed(): number {
    return this.#shed
  }

  /** Takes `kib` like `enter`, to be given back as a whole. Resolves to its release, callable once. */
  acquire(kib: number): Promise<() => void> | (() => void) {
    const share = this.enter(kib)
    return share instanceof Promise ? share.then(({ release }) => release) : share.release
  }

  /**
   * Takes `kib` (at least 1, at most the total: a read over the total runs alone). Rejects with 503 when that takes too
   * long.
   */
  enter(kib: number): Promise<Share> | Share {
    const cost = this.#cost(kib)
    const isPassing = this.#mayEnter(cost)
    if (isPassing !== null) return new Share(this, this.#take(cost, isPassing), cost)
    if (this.#waitMs === 0) throw this.#refuse(cost)
    return new Promise((resolve, reject) => {
      const granted = (part: Part) => {
        expire.cancel()
        resolve(new Share(this, part, cost))
      }
      const leave = this.#queue(cost, granted)
      const expire = this.#expire(cost, reject, leave)
    })
  }

  /**
   * Takes `kib` for one that was let in already and holds nothing now. It waits as long as it must, since it cannot be
   * shed any more; what is returned ends the wait. `granted` may be called before this returns.
   */
  reenter(kib: number, granted: (part: Part) => void): () => void {
    const cost = this.#cost(kib)
    const isPassing = this.#mayEnter(cost)
    if (isPassing === null) return this.#queue(cost, granted)
    granted(this.#take(cost, isPassing))
    return () => {}
  }

  /**
   * Takes `kib` more for one that holds some. `refused` is called with a 503 instead of `granted` when that takes too
   * long; either may be called before this returns. What is returned ends the wait.
   */
  grow(
    share: Share,
    kib: number,
    granted: (part: Part, kib: number) => void,
    refused: (error: HttpError) => void,
  ): () => void {
    const more = Math.min(Math.ceil(kib / STEP_KIB) * STEP_KIB, this.totalKib - share.kib)
    this.#growing ??= share
    if (this.#growing === share && more <= this.#availableKib) {
      granted(this.#take(more, false), more)
      return () => {}
    }
    if (this.#waitMs === 0) {
      refused(this.#refuse(share.kib + more))
      return () => {}
    }
    const grower: Grower = {
      ...{ share, kib: more },
      grant: () => {
        expire.cancel()
        granted(this.#take(more, false), more)
      },
    }
    this.#growers.add(grower)
    const leave = () => {
      expire.cancel()
      if (this.#growers.delete(grower)) this.#serve()
    }
    const expire = this.#expire(share.kib + more, refused, leave)
    return leave
  }

  /** Lets another grow. */
  grown(share: Share): void {
    if (this.#growing !== share) return
    this.#growing = null
    this.#serve()
  }

  #cost(kib: number): number {
    return Math.min(Math.max(1, Math.ceil(kib)), this.totalKib)
  }

  /** Those that may be let in, in the order in which they are. */
  *#waiters(): Generator<Waiter> {
    for (const one of this.#growers) {
      this.#growing ??= one.share
      if (this.#growing === one.share) yield one
    }
    yield* this.#line
  }

  /** Null for one that has to wait, else whether it passes another. */
  #mayEnter(kib: number): boolean | null {
    if (kib > this.#availableKib) return null
    let head: Waiter | undefined
    for (const waiter of this.#waiters()) {
      head ??= waiter
      if (!this.#mayPass(kib, head, waiter)) return null
    }
    return head !== undefined
  }

  /** Whether so many KiB, which are free, may be taken before the head of the line and another waiter are let in. */
  #mayPass(kib: number, head: Waiter, other: Waiter): boolean {
    if (kib * MUCH_TIMES > other.kib) return false
    const inTheWay = head.kib - this.#availableKib
    return this.#passedKib < inTheWay && this.#passedKib + kib <= this.#passingKib
  }

  #take(kib: number, isPassing: boolean): Part {
    this.#availableKib -= kib
    if (isPassing) this.#passedKib += kib
    let held = kib
    return (less) => {
      const freed = Math.min(held, less)
      if (freed <= 0) return 0
      held -= freed
      this.#availableKib += freed
      if (isPassing) this.#passedKib -= freed
      this.#serve()
      return freed
    }
  }

  #queue(kib: number, granted: (part: Part) => void): () => void {
    const waiter: Waiter = { kib, grant: (isPassing) => granted(this.#take(kib, isPassing)) }
    this.#line.add(waiter)
    return () => {
      if (this.#line.delete(waiter)) this.#serve()
    }
  }

  #serve(): void {
    let head: Waiter | undefined
    /** The one that waits for the least of those that were not let in. */
    let least: Waiter | undefined
    for (const waiter of this.#waiters()) {
      if (this.#availableKib === 0) return
      const fits = waiter.kib <= this.#availableKib && (!head || this.#mayPass(waiter.kib, head, least!))
      if (fits) {
        this.#line.delete(waiter)
        this.#growers.delete(waiter as Grower)
        waiter.grant(head !== undefined)
      } else {
        head ??= waiter
        if (!least || waiter.kib < least.kib) least = waiter
      }
    }
  }

  #expire(kib: number, refused: (error: HttpError) => void, leave: () => void): { cancel: () => void } {
    const timer = setTimeout(() => {
      // Told first: others may be let in when this one leaves.
      refused(this.#refuse(kib))
      leave()
    }, this.#waitMs).unref()
    return { cancel: () => clearTimeout(timer) }
  }

  #refuse(kib: number): HttpError {
    this.#shed += 1
    return new HttpError(503, this.#refusal(kib, this.totalKib), { 'retry-after': '1' })
  }
}

/** Gives so many KiB of what was taken back; tells how many these were. */
type Part = (less: number) => number

/** What one reader holds of the budget: it shrinks as memory is freed, and grows again for a next page. */
export class Share {
  readonly #budget: MemoryBudget
  #giveBack: Part
  #kib: number
  #isReleased = false
  #leaveLine = () => {}
  #goOn = () => {}

  constructor(budget: MemoryBudget, giveBack: Part, kib: number) {
    this.#budget = budget
    this.#giveBack = giveBack
    this.#kib = kib
  }

  get kib(): number {
    return this.#kib
  }

  /** Gives back all but what so many bytes need; never takes more. One that has grown is done with it. */
  keep(bytes: number): void {
    this.#budget.grown(this)
    const less = this.#kib - Math.ceil(bytes / KIB)
    if (less <= 0) return
    this.#kib -= less
    this.#giveBack(less)
  }

  /**
   * Gives back what is held, and waits until `kib` are held instead, however long that takes: who holds nothing while
   * waiting cannot keep others from ending. Resolves without them when all was released meanwhile.
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

  /**
   * Takes more until so many bytes are held, or the whole budget. Rejects with 503 when that takes too long; resolves
   * without them when all was released meanwhile.
   */
  async grow(bytes: number): Promise<void> {
    const wanted = Math.min(Math.ceil(bytes / KIB), this.#budget.totalKib)
    if (this.#isReleased || wanted <= this.#kib) return
    await new Promise<void>((resolve, reject) => {
      this.#goOn = resolve
      const granted = (part: Part, kib: number) => {
        const held = this.#giveBack
        this.#giveBack = (less) => {
          const freed = part(less)
          return freed + held(less - freed)
        }
        this.#kib += kib
        resolve()
      }
      this.#leaveLine = this.#budget.grow(this, wanted - this.#kib, granted, reject)
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

// Clients look for both phrases.
const readRefusal = (kib: number, totalKib: number) =>
  `read memory budget exhausted: the read needs ${kib} KiB of a ${totalKib} KiB budget; retry in a moment, or raise BROKER_READ_MEMORY_BUDGET_MB`
