/**
 * Folding: calls that arrive while a statement of the same kind is in flight leave together in the next one.
 *
 * Under load one statement answers dozens of callers for little more than the price of one; an idle fold adds
 * nothing, because nobody waits on a timer.
 */
import { DatabaseBusy, DatabaseUnavailable } from './errors.ts'

export interface FoldOptions<Item, Result> {
  /** Statements in flight at most: 2. */
  lanes?: number
  /** Items per statement at most: 64. */
  maxItems?: number
  /** Items with equal keys are never in flight together: the later waits for the earlier, in order of arrival. */
  key?: (item: Item) => string
  /** What an item adds to `maxWeight`, for instance its bytes; an item heavier than that travels alone. */
  weight?: (item: Item) => number
  maxWeight?: number
  /** Items waiting at most, beyond which calls are refused with DatabaseUnavailable: 4096. */
  maxWaiting?: number
  /** One statement for all items; one result per item, in their order. */
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
  /** The one behind it in the line. */
  next: Entry<Item, Result> | null
  /** The one of the same key that joins the line once this one is answered. */
  heir: Entry<Item, Result> | null
}

/**
 * The folded form of `run`.
 *
 * A fault in a statement of several items is settled by running each alone, so that one bad item does not fail its
 * neighbours; DatabaseUnavailable and DatabaseBusy say nothing about items and go to every caller at once.
 */
export function createFold<Item, Result>(options: FoldOptions<Item, Result>): (item: Item) => Promise<Result> {
  type Member = Entry<Item, Result>
  const { run, key, weight, lanes = LANES, maxItems = MAX_ITEMS, maxWeight = Number.POSITIVE_INFINITY, maxWaiting = MAX_WAITING } = options
  /** The newest unanswered entry of each key. */
  const newest = new Map<string, Member>()
  let head: Member | null = null
  let tail: Member | null = null
  let waiting = 0
  let busy = 0
  let gathering = false

  function append(entry: Member): void {
    if (tail === null) head = entry
    else tail.next = entry
    tail = entry
  }

  /** True when the entry has to wait for an earlier one of its key. */
  function isBehind(entry: Member): boolean {
    if (entry.key === null) return false
    const earlier = newest.get(entry.key)
    newest.set(entry.key, entry)
    if (earlier === undefined) return false
    earlier.heir = entry
    return true
  }

  function answered(entry: Member): void {
    const { key, heir } = entry
    entry.heir = null
    if (heir !== null) append(heir)
    else if (key !== null) newest.delete(key)
  }

  function depart(): void {
    const batch: Member[] = []
    const items: Item[] = []
    let load = 0
    while (head !== null && batch.length < maxItems) {
      const entry: Member = head
      load += entry.weight
      if (load > maxWeight && batch.length > 0) break
      batch.push(entry)
      items.push(entry.item)
      head = entry.next
      // An old one must not keep all that came after it alive.
      entry.next = null
    }
    if (head === null) tail = null
    waiting -= batch.length
    busy++
    attempt(items).then(
      (results) => {
        for (let i = 0; i < batch.length; i++) batch[i]!.resolve(results[i]!)
        arrive(batch)
      },
      (error: unknown) => {
        if (batch.length === 1 || concernsAll(error)) {
          for (const entry of batch) entry.reject(error)
          arrive(batch)
        } else {
          oneByOne(batch).then(() => arrive(batch))
        }
      },
    )
  }

  async function attempt(items: Item[]): Promise<readonly Result[]> {
    const results = await run(items)
    if (results.length !== items.length) throw new ResultCountError(results.length, items.length)
    return results
  }

  /** Never rejects. */
  async function oneByOne(batch: readonly Member[]): Promise<void> {
    for (let i = 0; i < batch.length; i++) {
      try {
        const [result] = await attempt([batch[i]!.item])
        batch[i]!.resolve(result!)
      } catch (error) {
        batch[i]!.reject(error)
        if (!concernsAll(error)) continue
        for (const entry of batch.slice(i + 1)) entry.reject(error)
        return
      }
    }
  }

  function arrive(batch: readonly Member[]): void {
    busy--
    for (const entry of batch) answered(entry)
    while (head !== null && busy < lanes) depart()
  }

  // With a statement under way, what else arrives in this turn of the event loop shares the free lane.
  function gather(): void {
    gathering = true
    setImmediate(() => {
      gathering = false
      if (head !== null && busy < lanes) depart()
    })
  }

  return (item) =>
    new Promise<Result>((resolve, reject) => {
      if (waiting >= maxWaiting) return reject(new DatabaseUnavailable(`${waiting} calls are already waiting`, 'FOLD_FULL'))
      const entry: Member = { item, key: key?.(item) ?? null, weight: weight?.(item) ?? 0, resolve, reject, next: null, heir: null }
      waiting++
      if (isBehind(entry)) return
      append(entry)
      if (busy === 0) depart()
      else if (busy < lanes && !gathering) gather()
    })
}

class ResultCountError extends Error {
  override readonly name = 'ResultCountError'

  constructor(results: number, items: number) {
    super(`a folded statement gave ${results} results for ${items} items`)
  }
}

/** Whether running the items one by one could not come to anything else. */
function concernsAll(error: unknown): boolean {
  return error instanceof DatabaseUnavailable || error instanceof DatabaseBusy || error instanceof ResultCountError
}
