/**
 * Folding: calls that arrive while a statement of the same kind is in flight are answered together by the next one.
 *
 * Under load one statement answers dozens of callers for little more than the price of one; an idle fold adds
 * no delay, since no call waits for a timer.
 */
import { DatabaseBusy, DatabaseUnavailable } from './errors.ts'
import { createLanes } from './lanes.ts'

export interface FoldOptions<Item, Result> {
  /** Statements in flight at most: 2. */
  lanes?: number
  /** For so long the lanes after the first wait for a statement to end: 0. */
  patienceMs?: number
  /** Items per statement at most: 64. */
  maxItems?: number
  /** Items with equal keys are never in flight together: the later waits for the earlier, in order of arrival. */
  key?: (item: Item) => string
  /** Share of an item in `maxWeight`, for instance its bytes; an item heavier than that goes alone. */
  weight?: (item: Item) => number
  maxWeight?: number
  /** Items waiting at most, beyond which calls are refused with DatabaseUnavailable: 4096. */
  maxWaiting?: number
  /** One statement for all items; one result per item, in tsuccessor order. */
  run: (items: Item[]) => Promise<readonly Result[]>
}

const LANES = 2
const MAX_ITEMS = 64
const MAX_WAITING = 4_096

interface Entry<Item, Result> {
  readonly item: Item
  readonly key: string | null
  readonly weight: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
  /** The next one in the queue. */
  next: Entry<Item, Result> | null
  /** The entry of the same key that joins the queue once this one is answered. */
  successor: Entry<Item, Result> | null
}

/**
 * The folded form of `run`.
 *
 * A fault in a statement of several items is settled by running each alone, so that one bad item does not fail its
 * neighbours; DatabaseUnavailable and DatabaseBusy say nothing about items and go to every caller at once.
 */
export function createFold<Item, Result>(options: FoldOptions<Item, Result>): (item: Item) => Promise<Result> {
  type Member = Entry<Item, Result>
  const {
    run,
    key,
    weight,
    maxItems = MAX_ITEMS,
    maxWeight = Number.POSITIVE_INFINITY,
    maxWaiting = MAX_WAITING,
  } = options
  /** The newest unanswered entry of each key. */
  const newest = new Map<string, Member>()
  let head: Member | null = null
  let tail: Member | null = null
  let waiting = 0

  function enqueue(entry: Member): void {
    if (tail === null) head = entry
    else tail.next = entry
    tail = entry
  }

  /** True when the entry has to wait for an earlier one of its key, which then has it as its successor. */
  function mustWait(entry: Member): boolean {
    if (entry.key === null) return false
    const earlier = newest.get(entry.key)
    newest.set(entry.key, entry)
    if (earlier === undefined) return false
    earlier.successor = entry
    return true
  }

  function release(entry: Member): void {
    const { key, successor } = entry
    entry.successor = null
    if (successor !== null) enqueue(successor)
    else if (key !== null) newest.delete(key)
  }

  function takeBatch(): Member[] | null {
    if (head === null) return null
    const batch: Member[] = []
    let load = 0
    while (head !== null && batch.length < maxItems) {
      const entry: Member = head
      load += entry.weight
      if (load > maxWeight && batch.length > 0) break
      batch.push(entry)
      head = entry.next
      // An old entry must not keep all later ones alive.
      entry.next = null
    }
    if (head === null) tail = null
    waiting -= batch.length
    return batch
  }

  /** Never rejects. */
  async function send(batch: Member[]): Promise<void> {
    try {
      const results = await attempt(batch)
      for (let i = 0; i < batch.length; i++) batch[i]!.resolve(results[i]!)
    } catch (error) {
      if (batch.length > 1 && !concernsAll(error)) await oneByOne(batch)
      else for (const entry of batch) entry.reject(error)
    }
    for (const entry of batch) release(entry)
    lanes.finish(batch)
  }

  async function attempt(batch: readonly Member[]): Promise<readonly Result[]> {
    const results = await run(batch.map(({ item }) => item))
    if (results.length !== batch.length)
      throw new ResultCountError(`a folded statement gave ${results.length} results for ${batch.length} items`)
    return results
  }

  /** Never rejects. */
  async function oneByOne(batch: readonly Member[]): Promise<void> {
    let outage: unknown
    for (const entry of batch) {
      try {
        if (outage !== undefined) throw outage
        const [result] = await attempt([entry])
        entry.resolve(result!)
      } catch (error) {
        if (concernsAll(error)) outage = error
        entry.reject(error)
      }
    }
  }

  const lanes = createLanes(options.lanes ?? LANES, takeBatch, send, options.patienceMs)
  return (item) =>
    new Promise<Result>((resolve, reject) => {
      if (waiting >= maxWaiting)
        return reject(new DatabaseUnavailable(`${waiting} calls are already waiting`, 'FOLD_FULL'))
      const entry: Member = {
        item,
        key: key?.(item) ?? null,
        weight: weight?.(item) ?? 0,
        resolve,
        reject,
        next: null,
        successor: null,
      }
      waiting++
      if (mustWait(entry)) return
      enqueue(entry)
      lanes.start()
    })
}

class ResultCountError extends Error {
  override readonly name = 'ResultCountError'
}

/** Whether running the items one by one would fail in the same way. */
function concernsAll(error: unknown): boolean {
  return error instanceof DatabaseUnavailable || error instanceof DatabaseBusy || error instanceof ResultCountError
}
