import { HttpError } from '../errors.ts'

export const KIB = 1_024

/** A read may overtake a waiting one that needs at least this many times as much. */
const MUCH_TIMES = 4
/** Reads that have overtaken another one hold at most the whole budget divided by this. */
const PASSING_PART = 2
/** Smallest step by which a growing read takes more. */
const STEP_KIB = 4 * 1_024

interface Waiter {
  readonly kib: number
  /** Takes the memory. */
  readonly grant: (isPassing: boolean) => void
}

interface Grower extends Waiter {
  readonly share: Share
}

/**
 * The memory that list routes may hold at once (docs/contract.md#limits). Each read charges its worst case before its
 * statement runs, and afterwards the memory it really holds. A read whose worst case is far above its usual size begins
 * with the usual size and takes more in steps. If the budget has no room, a read waits in line, and is refused with 503
 * after the longest wait. A list is whole or refused, never cut.
 *
 * Reads are served first come, first served, but a small read may overtake a large one that has to wait for others
 * anyway. Overtaking ends as soon as only the reads that have overtaken are in the way: a large read waits for the
 * memory that was held when it came to the head of the line and for the few reads that have overtaken it by then,
 * however many small ones keep coming.
 *
 * A growing read holds memory while it waits for more. Two of them could wait for each other, so only one at a time
 * grows, until it is done, and it is served before all reads that hold nothing yet.
 */
export class MemoryBudget {
  readonly totalKib: number
  readonly #waitMs: number
  readonly #passingKib: number
  readonly #refusal: (kib: number, totalKib: number) => string
  /** In order of arrival, as a set keeps it. */
  readonly #line = new Set<Waiter>()
  readonly #growers = new Set<Grower>()
  #growing: Share | null = null
  #availableKib: number
  /** The part of the held memory that belongs to reads that have overtaken another. */
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

  /** Takes `kib` like `enter`, to be given back as a whole. Resolves to its release, which may be called once. */
  acquire(kib: number): Promise<() => void> | (() => void) {
    const share = this.enter(kib)
    return share instanceof Promise ? share.then(({ release }) => release) : share.release
  }

  /**
   * Takes `kib` (at least 1, at most the total: a read over the total runs alone). Rejects with 503 after the longest
   * wait.
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
   * Takes `kib` for a read that was admitted before and holds nothing now. It waits without a limit, because it can no
   * longer be refused; the returned function ends the wait. `granted` may be called before this returns.
   */
  reenter(kib: number, granted: (part: Part) => void): () => void {
    const cost = this.#cost(kib)
    const isPassing = this.#mayEnter(cost)
    if (isPassing === null) return this.#queue(cost, granted)
    granted(this.#take(cost, isPassing))
    return () => {}
  }

  /**
   * Takes `kib` more for a read that holds some. After the longest wait it calls `refused` with a 503 instead of
   * `granted`; either may be called before this returns. The returned function ends the wait.
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

  /** Ends the growth of `share`, so that another one may grow. */
  grown(share: Share): void {
    if (this.#growing !== share) return
    this.#growing = null
    this.#serve()
  }

  #cost(kib: number): number {
    return Math.min(Math.max(1, Math.ceil(kib)), this.totalKib)
  }

  /** The waiters that may be served, in that order. */
  *#waiters(): Generator<Waiter> {
    for (const one of this.#growers) {
      this.#growing ??= one.share
      if (this.#growing === one.share) yield one
    }
    yield* this.#line
  }

  /** Null if the read has to wait, else whether it overtakes another. */
  #mayEnter(kib: number): boolean | null {
    if (kib > this.#availableKib) return null
    let head: Waiter | undefined
    for (const waiter of this.#waiters()) {
      head ??= waiter
      if (!this.#mayPass(kib, head, waiter)) return null
    }
    return head !== undefined
  }

  /**
   * Whether `kib`, which are free, may be taken before the waiter at the head of the line and another waiter are
   * served.
   */
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
    /** The waiter with the smallest need among those that were not served. */
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
      // The refusal comes first, because others may be served when this one leaves.
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

/** Gives back up to `less` KiB of the memory that was taken; returns the KiB given back. */
type Part = (less: number) => number

/** The memory that one reader holds of the budget: it shrinks as memory is freed, and grows again for a next page. */
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

  /** Gives back all but the memory for this many bytes; never takes more. Ends the growth of this share. */
  keep(bytes: number): void {
    this.#budget.grown(this)
    const less = this.#kib - Math.ceil(bytes / KIB)
    if (less <= 0) return
    this.#kib -= less
    this.#giveBack(less)
  }

  /**
   * Gives back the held memory, then waits without a limit until `kib` are held instead: a reader that holds nothing
   * while it waits cannot keep others from ending. Resolves without them if the share was released meanwhile.
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
   * Takes more until memory for this many bytes is held, or the whole budget. Rejects with 503 after the longest wait;
   * resolves without the memory if the share was released meanwhile.
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
  `read memory budget exhausted: the read needs ${kib} KiB of a ${totalKib} KiB budget; retry in a moment, or ` +
  'raise BROKER_READ_MEMORY_BUDGET_MB'
