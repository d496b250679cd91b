import { createLanes } from '../db/batcher.ts'
import { DatabaseBusy, DatabaseUnavailable, type Gate, isOutcomeUnknown } from '../db/index.ts'
import { Slice, yieldToEventLoop } from '../event-loop/slices.ts'
import { Batch, type Entry } from './batch.ts'
import { resolveDuplicates, type Suppressed } from './duplicates.ts'
import { canonicalize, type Flow, flowKey, type MatchKeys, matchKeys, repeatKey, uuidOfDay } from './flow.ts'
import { askOwn, askStored, type InsertResult, insertNew, insertUnlessKnown, type NumberedFlow } from './insert.ts'
import type { SeenFlows } from './seen.ts'
import { UnacknowledgedFlows } from './unacknowledged.ts'

const LANES = 2
/** A statement takes whole posts up to this many flows; a larger post goes alone. */
const MAX_FLOWS_PER_STATEMENT = 1_000
const MAX_QUEUED_FLOWS = 50_000
const UNIQUE_VIOLATION = '23505'
/** Some 15 MB with keys of about a hundred characters. */
const MAX_UNACKNOWLEDGED_FLOWS = 50_000
/** Longer than most outages: agents repeat refused posts until they are accepted. */
const UNACKNOWLEDGED_MS = 30 * 60_000

/** The inserted flows of a post, as uuids or as whole records, in no order. */
type Inserted = InsertResult['inserted']

/** A post is resolved when each of its flows is stored or known to be a duplicate. */
interface Post {
  undecided: number
  failed: boolean
  readonly records: boolean
  readonly inserted: Inserted
  /** The flows that are `inserted`. */
  readonly stored: QueueEntry[]
  readonly resolve: (inserted: Inserted) => void
  readonly reject: (error: unknown) => void
}

interface QueueEntry extends Entry {
  /** Position in the order of arrival. */
  readonly seq: number
  readonly post: Post
  /** See `flowKey`. */
  readonly key: string | null
  decided: boolean
}

/**
 * Writes each flow once (docs/contract.md#deduplication). Posts that arrive while a statement is in flight are stored
 * together by the next one. The result equals posting every flow in order: a flow that may be a duplicate of one in
 * flight waits for it; possible duplicates within a batch are resolved here, after asking which of them the table has;
 * a flow that was not stored suppresses nothing. Between processes the unique indexes decide. A flow that was stored
 * without an acknowledgement counts as new when it is posted again.
 */
export class FlowWriter {
  readonly #gate: Gate
  readonly #seen: SeenFlows
  readonly #onStored: (flow: Flow) => void
  readonly #unacknowledged: UnacknowledgedFlows
  #queue: QueueEntry[] = []
  /** All flows of the last insert were new. */
  #expectNew = false
  #arrivals = 0
  readonly #lanes = createLanes<Batch<QueueEntry>>(
    LANES,
    () => this.#takeBatch(),
    (batch) => this.#send(batch),
  )

  /** `onStored` is called once per inserted flow, after commit. It must not throw. */
  constructor(gate: Gate, seen: SeenFlows, onStored: (flow: Flow) => void = () => {}, now = () => performance.now()) {
    this.#gate = gate
    this.#seen = seen
    this.#onStored = onStored
    this.#unacknowledged = new UnacknowledgedFlows({
      maxFlows: MAX_UNACKNOWLEDGED_FLOWS,
      maxAgeMs: UNACKNOWLEDGED_MS,
      now,
    })
  }

  /** Stores the new ones of `flows` (changed in place: addresses become canonical). Resolves after commit. */
  async write(flows: Flow[], options: { records: boolean }): Promise<Inserted> {
    const repeats = new Set<string>()
    const fresh: [flow: Flow, key: string | null, keys: MatchKeys][] = []
    this.#seen.expire()
    // A post joins the queue as a whole, once its last flow is prepared.
    const slice = new Slice()
    for (const flow of flows) {
      if (slice.isOver) await slice.next()
      const keys = matchKeys(canonicalize(flow))
      const key = flowKey(flow, keys)
      if (key === null ? isRepeat(flow, repeats) : this.#seen.has(key)) continue
      fresh.push([flow, key, keys])
    }
    if (fresh.length === 0) return []
    if (this.#queue.length > MAX_QUEUED_FLOWS) throw new DatabaseUnavailable('too many flows are waiting', 'LINE_FULL')
    return new Promise((resolve, reject) => {
      const post: Post = {
        undecided: fresh.length,
        failed: false,
        records: options.records,
        inserted: [],
        stored: [],
        resolve,
        reject,
      }
      for (const [flow, key, keys] of fresh)
        this.#queue.push({ seq: this.#arrivals++, post, flow, key, keys, decided: false })
      this.#lanes.start()
    })
  }

  #takeBatch(): Batch<QueueEntry> | null {
    if (this.#queue.length === 0) return null
    const batch = new Batch<QueueEntry>()
    const deferred = new Batch<QueueEntry>()
    let taken = 0
    for (const entry of this.#queue) {
      const { entries } = batch
      if (entries.length >= MAX_FLOWS_PER_STATEMENT && entry.post !== entries.at(-1)!.post) break
      taken++
      if (entry.post.failed) continue
      if (entry.key !== null && this.#seen.has(entry.key)) decide(entry)
      else if (this.#mustWait(entry, deferred)) deferred.add(entry)
      else batch.add(entry)
    }
    this.#queue = deferred.entries.concat(this.#queue.slice(taken))
    return batch.entries.length > 0 ? batch : null
  }

  /** Whether a flow in flight could suppress this one, or a deferred flow could suppress it or be suppressed by it. */
  #mustWait(entry: QueueEntry, deferred: Batch<QueueEntry>): boolean {
    for (const batch of this.#lanes.inFlight) if (batch.couldSuppress(entry)) return true
    return deferred.entries.length > 0 && (deferred.couldSuppress(entry) || deferred.couldBeSuppressedBy(entry))
  }

  /** Never rejects. */
  async #send(batch: Batch<QueueEntry>): Promise<void> {
    const { entries } = batch
    try {
      await this.#store(batch)
    } catch (error) {
      if (isDatabaseError(error)) for (const { post } of entries) this.#fail(post, error)
      else await this.#storeOneByOne(entries)
    }
    if (isLong(entries)) await yieldToEventLoop()
    const undecided = entries.filter((entry) => !entry.decided)
    if (undecided.length > 0) this.#queue = undecided.concat(this.#queue).sort((a, b) => a.seq - b.seq)
    this.#lanes.finish(batch)
  }

  async #store(batch: Batch<QueueEntry>): Promise<void> {
    const since = this.#seen.epoch
    const contested = batch.contested()
    if (contested.length === 0) return this.#storeAll(batch.entries, [], since)
    const answer = await askStored(this.#gate, numbered(contested))
    const known = new Set(answer.known)
    const uuids = new Set(answer.uuids)
    const positions = new Map(contested.map((entry, n) => [entry, n]))
    const resolved = resolveDuplicates(batch.entries, (entry) => {
      const n = positions.get(entry)
      return n === undefined ? undefined : { isKnown: known.has(n), uuidExists: uuids.has(n) }
    })
    await this.#claim([...resolved.known, ...resolved.uuidExists], since)
    for (const entry of resolved.known) if (!entry.decided) this.#decideKnown(entry, since)
    for (const entry of resolved.uuidExists) if (!entry.decided) decide(entry)
    if (resolved.accepted.length > 0) await this.#storeAll(resolved.accepted, resolved.suppressed, since)
  }

  /** Stores flows without duplicates among them, then decides the flows that the stored ones suppress. */
  async #storeAll(
    entries: readonly QueueEntry[],
    suppressed: readonly Suppressed<QueueEntry>[],
    since: number,
  ): Promise<void> {
    // Of flows of several days with one uuid, only records tell which was stored.
    const isAmbiguous = new Set(entries.map(({ flow }) => flow.uuid)).size < entries.length
    const records = isAmbiguous || entries.some((entry) => entry.post.records)
    const nameOf = isAmbiguous ? uuidOfDay : ({ uuid }: { uuid: string }) => uuid
    if (isLong(entries)) await yieldToEventLoop()
    const result = await this.#insert(entries, records)
    if (isLong(entries)) await yieldToEventLoop()
    const rows = new Map(result.inserted.map((one) => [typeof one === 'string' ? one : nameOf(one), one]))
    const numbers = new Set(result.known)
    this.#expectNew = rows.size === entries.length
    const stored = new Set<QueueEntry>()
    const known: QueueEntry[] = []
    const unclear: QueueEntry[] = []
    for (const [n, entry] of entries.entries()) {
      const row = rows.get(nameOf(entry.flow))
      if (row !== undefined) {
        stored.add(entry)
        this.#decideInserted(entry, row, since)
      } else if (numbers.has(n)) known.push(entry)
      else unclear.push(entry)
    }
    for (const entry of await this.#claim([...known, ...unclear], since)) stored.add(entry)
    for (const entry of known) if (!entry.decided) this.#decideKnown(entry, since)
    // A flow that was neither stored nor known lost to a concurrent statement, by its members or its uuid: its repeats
    // must ask the database again.
    for (const entry of unclear) if (!entry.decided) decide(entry)
    for (const { entry, by, isMatch } of suppressed) {
      // If `by` was not stored, the flow that suppressed it need not suppress this one, which goes back to the queue.
      if (!stored.has(by)) continue
      if (isMatch) this.#decideKnown(entry, since)
      else decide(entry)
    }
  }

  /**
   * Finds the flows among `entries` that an earlier attempt stored without an acknowledgement: they count as inserted.
   * Called after the insert, which waits for an attempt that is still under way.
   */
  async #claim(entries: readonly QueueEntry[], since: number): Promise<QueueEntry[]> {
    if (this.#unacknowledged.size === 0) return []
    const candidates = entries.filter((entry) => this.#unacknowledged.get(uuidOfDay(entry.flow)) !== undefined)
    if (candidates.length === 0) return []
    const records = candidates.some((entry) => entry.post.records)
    const claimed: QueueEntry[] = []
    for (const [n, row] of await askOwn(this.#gate, numbered(candidates), records)) {
      const entry = candidates[n]!
      const found = this.#unacknowledged.get(uuidOfDay(entry.flow))
      // If the same flow occurs twice, only the first is the row.
      if (found === undefined) continue
      this.#decideInserted(entry, row, since, found.isReported)
      claimed.push(entry)
    }
    // The others were not stored and need no further query, unless they share only the uuid of one that was.
    for (const { decided, flow, key } of candidates)
      if (!decided && this.#unacknowledged.get(uuidOfDay(flow))?.key === key)
        this.#unacknowledged.delete(uuidOfDay(flow))
    return claimed
  }

  #decideInserted(entry: QueueEntry, row: Inserted[number], since: number, isReported = false): void {
    const { post, flow, key } = entry
    if (this.#unacknowledged.size > 0) this.#unacknowledged.delete(uuidOfDay(flow))
    if (!isReported) this.#onStored(flow)
    post.inserted.push(row)
    post.stored.push(entry)
    if (post.failed) {
      this.#unacknowledged.add(uuidOfDay(flow), key, true)
      decide(entry)
    } else this.#decideKnown(entry, since)
  }

  /** `since` is the epoch of `SeenFlows` at the time of the query. */
  #decideKnown(entry: QueueEntry, since: number): void {
    if (entry.key !== null && !this.#unacknowledged.hasKey(entry.key)) this.#seen.add(entry.key, since)
    decide(entry)
  }

  async #insert(entries: readonly QueueEntry[], records: boolean): Promise<InsertResult> {
    const flows = numbered(entries)
    const onOutcomeUnknown = () => {
      for (const { flow, key } of entries) this.#unacknowledged.add(uuidOfDay(flow), key, false)
    }
    const unlessKnown = () => insertUnlessKnown(this.#gate, flows, records, onOutcomeUnknown)
    try {
      if (records || !this.#expectNew) return await unlessKnown()
      return await insertNew(this.#gate, flows, onOutcomeUnknown).catch((error) => {
        if ((error as { code?: string }).code !== UNIQUE_VIOLATION) throw error
        return unlessKnown()
      })
    } catch (error) {
      if (isOutcomeUnknown(error)) onOutcomeUnknown()
      throw error
    }
  }

  /** The agent posts the stored flows of this post again; they are acknowledged then. */
  #fail(post: Post, error: unknown): void {
    if (post.failed || post.undecided === 0) return
    post.failed = true
    for (const { flow, key } of post.stored) {
      this.#unacknowledged.add(uuidOfDay(flow), key, true)
      if (key !== null) this.#seen.delete(key)
    }
    post.reject(error)
  }

  /** An error of one post must not fail the others. */
  async #storeOneByOne(entries: readonly QueueEntry[]): Promise<void> {
    const posts = new Map<Post, Batch<QueueEntry>>()
    for (const entry of entries) {
      if (entry.decided) continue
      const own = posts.get(entry.post) ?? new Batch<QueueEntry>()
      own.add(entry)
      posts.set(entry.post, own)
    }
    let outage: unknown
    for (const [post, own] of posts) {
      try {
        if (outage !== undefined) throw outage
        await this.#store(own)
      } catch (error) {
        if (isDatabaseError(error)) outage = error
        this.#fail(post, error)
      }
    }
  }
}

/** Whether each step takes so long that the event loop must serve other requests in between. */
const isLong = ({ length }: readonly QueueEntry[]) => length > MAX_FLOWS_PER_STATEMENT

// `n` first: a spread before the new field takes twice as long.
const numbered = (entries: readonly QueueEntry[]) => entries.map(({ flow }, n): NumberedFlow => ({ n, ...flow }))

function decide(entry: QueueEntry): void {
  const { post } = entry
  entry.decided = true
  post.undecided--
  if (post.undecided === 0 && !post.failed) post.resolve(post.inserted)
}

const isDatabaseError = (error: unknown) => error instanceof DatabaseBusy || error instanceof DatabaseUnavailable

function isRepeat(flow: Flow, seen: Set<string>): boolean {
  const key = repeatKey(flow)
  return seen.size === seen.add(key).size
}
