/**
 * Batching: calls that arrive while a statement of the same kind is in flight share the next statement. Under load one
 * statement answers dozens of callers for little more than the cost of one. Without load there is no delay.
 */
import type { Database } from './database.ts'
import { DatabaseBusy, DatabaseUnavailable } from './errors.ts'

export interface BatcherOptions<Item, Result> {
  /** Most statements in flight: 2. */
  lanes?: number
  /** Time that lanes after the first wait for a statement to end before they start one: 0. */
  patienceMs?: number
  /** Most items in a statement: 64. */
  maxItems?: number
  /** Items with equal keys are never in flight together: the later one waits, in order of arrival. */
  key?: (item: Item) => string
  /** Share of an item in `maxWeight`, such as its bytes. An item heavier than `maxWeight` travels alone. */
  weight?: (item: Item) => number
  maxWeight?: number
  /** Most items waiting; further calls are rejected with DatabaseUnavailable: 4096. */
  maxWaiting?: number
  /** One statement for all items; resolves to one result for each item, in their order. */
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
 * The batched form of `run`.
 *
 * After a fault in a statement of several items, each item runs alone, so that a bad one does not fail the others.
 * DatabaseUnavailable and DatabaseBusy do not depend on items and reject every caller at once.
 */
export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): (item: Item) => Promise<Result> {
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

  /** True when an earlier entry of the same key is unanswered; the entry then becomes its successor. */
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
      // An old entry must not keep all later ones in memory.
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
      throw new ResultCountError(`a batched statement returned ${results.length} results for ${batch.length} items`)
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
        return reject(new DatabaseUnavailable(`${waiting} calls are already waiting`, 'BATCHER_FULL'))
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

/** Whether the items would fail in the same way one by one. */
function concernsAll(error: unknown): boolean {
  return error instanceof DatabaseUnavailable || error instanceof DatabaseBusy || error instanceof ResultCountError
}

/**
 * Sends batches, at most `max` at a time. An arrival with nothing in flight is sent at once. Further arrivals in the
 * same turn of the event loop share a free lane; when all lanes are busy they wait for one.
 *
 * With `patienceMs` a second lane starts only when no batch has ended for that time: quick statements then follow each
 * other, each for more callers, and a slow one does not hold up the others for long.
 *
 * `take` makes the next batch, or returns null when nothing can be sent. `finish` must be called once for each batch
 * that `send` got, and not before `send` returns.
 */
export function createLanes<Batch>(
  max: number,
  take: () => Batch | null,
  send: (batch: Batch) => void,
  patienceMs = 0,
) {
  const inFlight = new Set<Batch>()
  let isGathering = false
  let timer: NodeJS.Timeout | undefined

  function sendNext(): boolean {
    const batch = take()
    if (batch === null) return false
    inFlight.add(batch)
    send(batch)
    return true
  }

  function gather(): void {
    isGathering = true
    if (patienceMs === 0) setImmediate(gathered)
    else timer = setTimeout(gathered, patienceMs)
  }

  function gathered(): void {
    isGathering = false
    if (inFlight.size < max) sendNext()
  }

  return {
    inFlight: inFlight as ReadonlySet<Batch>,
    /** To be called for each arrival. */
    start(): void {
      if (inFlight.size === 0) sendNext()
      else if (inFlight.size < max && !isGathering) gather()
    },
    /** Waiting items leave in all free lanes, or with patience in the first. */
    finish(batch: Batch): void {
      inFlight.delete(batch)
      if (patienceMs === 0) {
        while (inFlight.size < max && sendNext());
        return
      }
      clearTimeout(timer)
      isGathering = false
      if (inFlight.size > 0 || sendNext()) gather()
    },
  }
}

/** One batcher for each database, made when the route first runs there. */
export function perDatabase<Call>(make: (db: Database) => Call): (db: Database) => Call {
  const made = new WeakMap<Database, Call>()
  return (db) => {
    const call = made.get(db) ?? make(db)
    made.set(db, call)
    return call
  }
}

/**
 * A small write in batches: `run` writes all items in one statement. Items of one key are written one after the other.
 */
export function batchedWrite<Item>(
  options: Pick<BatcherOptions<Item, void>, 'weight' | 'maxWeight'> & {
    key: (item: Item) => string
    run: (db: Database, items: Item[]) => Promise<unknown>
  },
): (db: Database, item: Item) => Promise<void> {
  const batcherOf = perDatabase((db) =>
    createBatcher<Item, void>({
      ...options,
      run: async (items) => {
        await options.run(db, items)
        return items.map(() => undefined)
      },
    }),
  )
  return (db, item) => batcherOf(db)(item)
}

/** A list that many callers request at once: requests that arrive while it is being read share the next reading. */
export function sharedRead<Key extends string | number, Body = Buffer>(
  run: (db: Database, key: Key) => Promise<Body>,
): (db: Database, key: Key) => Promise<Body> {
  const batcherOf = perDatabase((db) =>
    createBatcher<Key, Body>({
      run: async (keys) => {
        const bodies = new Map<Key, Promise<Body>>()
        for (const key of keys) if (!bodies.has(key)) bodies.set(key, run(db, key))
        return Promise.all(keys.map((key) => bodies.get(key)!))
      },
    }),
  )
  return (db, key) => batcherOf(db)(key)
}
