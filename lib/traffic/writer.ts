import { DatabaseBusy, DatabaseUnavailable, type Gate, isInDoubt } from '../db/index.ts'
import { Lanes } from '../db/lanes.ts'
import { Slice, turn } from '../turns.ts'
import { Departure, type Traveller } from './departure.ts'
import { canonicalize, type Flow, flowKey, type MatchKeys, matchKeys, repeatKey } from './flow.ts'
import { askOwn, askStored, insertNew, insertUnlessKnown, type Outcome, type Outgoing } from './insert.ts'
import type { SeenFlows } from './seen.ts'
import { type Suppressed, settle } from './settle.ts'
import { UntoldFlows } from './untold.ts'

const LANES = 2
/** A statement is filled with whole posts up to this many flows; a larger post travels alone. */
const MAX_FLOWS_PER_STATEMENT = 1_000
const MAX_WAITING_FLOWS = 50_000
const UNIQUE_VIOLATION = '23505'
/** With keys of about a hundred characters some 15 MB. */
const MAX_UNTOLD_FLOWS = 50_000
/** Agents keep what was refused and post it again until it is taken: longer than most outages. */
const UNTOLD_MS = 30 * 60_000

/** What became of a post: the inserted flows, as uuids or as whole records, in no order. */
export type Inserted = Outcome['inserted']

/** A post on its way: resolved when each of its flows is stored or known to be a duplicate. */
interface Post {
  undecided: number
  failed: boolean
  readonly records: boolean
  readonly inserted: Inserted
  /** The flows that are `inserted`. */
  readonly stored: Entry[]
  readonly resolve: (inserted: Inserted) => void
  readonly reject: (error: unknown) => void
}

interface Entry extends Traveller {
  /** Place in the order of arrival. */
  readonly seq: number
  readonly post: Post
  /** What its repeats are known by once it is stored, or a duplicate. */
  readonly key: string | null
  decided: boolean
}

/**
 * Writes flows, each once (core-telemetry, Deduplication; interop-core section 3). Posts that arrive while a statement is in
 * flight leave together in the next. The outcome is that of posting every flow in turn: a flow that could be a duplicate of
 * one in flight waits for it, those that could be duplicates of each other are settled here once the table has told which it
 * knows, and a flow that was not stored suppresses nothing. The unique indexes decide between processes. A flow whose sender was
 * not told that it is stored is new once more when it comes again (D23).
 */
export class FlowWriter {
  readonly #gate: Gate
  readonly #seen: SeenFlows
  readonly #onStored: (flow: Flow) => void
  readonly #untold: UntoldFlows
  #line: Entry[] = []
  readonly #lanes: Lanes<Departure<Entry>>
  /** Whether the flows that get this far have lately all been new. */
  #expectNew = false
  #arrivals = 0

  /** `onStored` hears of each flow that was inserted, after commit, once. It must not throw. */
  constructor(gate: Gate, seen: SeenFlows, onStored: (flow: Flow) => void = () => {}, now = () => performance.now()) {
    this.#gate = gate
    this.#seen = seen
    this.#onStored = onStored
    this.#untold = new UntoldFlows({ maxFlows: MAX_UNTOLD_FLOWS, maxAgeMs: UNTOLD_MS, now })
    this.#lanes = new Lanes(
      LANES,
      () => this.#take(),
      (departure) => this.#send(departure),
    )
  }

  /** Stores what is new of `flows` (changed in place: addresses become canonical). Resolves after commit. */
  async write(flows: Flow[], options: { records: boolean }): Promise<Inserted> {
    const repeats = new Set<string>()
    const fresh: [flow: Flow, key: string | null, keys: MatchKeys][] = []
    this.#seen.expire()
    // A post joins the line as a whole, when the last of its flows is prepared.
    const slice = new Slice()
    for (const flow of flows) {
      if (slice.isOver) await slice.next()
      const key = flowKey(canonicalize(flow))
      if (key === null ? isRepeat(flow, repeats) : this.#seen.has(key)) continue
      fresh.push([flow, key, matchKeys(flow)])
    }
    if (fresh.length === 0) return []
    if (this.#line.length > MAX_WAITING_FLOWS) throw new DatabaseUnavailable('too many flows are waiting', 'LINE_FULL')
    return new Promise((resolve, reject) => {
      const post: Post = { undecided: fresh.length, failed: false, records: options.records, inserted: [], stored: [], resolve, reject }
      for (const [flow, key, keys] of fresh) this.#line.push({ seq: this.#arrivals++, post, flow, key, keys, decided: false })
      this.#lanes.start()
    })
  }

  #take(): Departure<Entry> | null {
    if (this.#line.length === 0) return null
    const departure = new Departure<Entry>()
    const behind = new Departure<Entry>()
    let taken = 0
    for (const entry of this.#line) {
      const { entries } = departure
      if (entries.length >= MAX_FLOWS_PER_STATEMENT && entry.post !== entries.at(-1)!.post) break
      taken++
      if (entry.post.failed) continue
      if (entry.key !== null && this.#seen.has(entry.key)) decide(entry)
      else if (this.#mustWait(entry, behind)) behind.add(entry)
      else departure.add(entry)
    }
    this.#line = behind.entries.concat(this.#line.slice(taken))
    return departure.entries.length > 0 ? departure : null
  }

  /** Whether a flow in flight could make this one a duplicate; or one that waits itself could, or be made one by this. */
  #mustWait(entry: Entry, behind: Departure<Entry>): boolean {
    for (const other of this.#lanes.inFlight) if (other.couldStop(entry)) return true
    return behind.entries.length > 0 && (behind.couldStop(entry) || behind.couldBeStoppedBy(entry))
  }

  /** Never rejects. */
  async #send(departure: Departure<Entry>): Promise<void> {
    const { entries } = departure
    try {
      await this.#store(departure)
    } catch (error) {
      if (concernsAll(error)) for (const { post } of entries) this.#fail(post, error)
      else await this.#storeOneByOne(entries)
    }
    if (isLong(entries)) await turn()
    const undecided = entries.filter((entry) => !entry.decided)
    if (undecided.length > 0) this.#line = undecided.concat(this.#line).sort((a, b) => a.seq - b.seq)
    this.#lanes.finish(departure)
  }

  async #store(departure: Departure<Entry>): Promise<void> {
    const since = this.#seen.epoch
    const contested = departure.contested()
    if (contested.length === 0) return this.#storeAll(departure.entries, [], since)
    const answer = await askStored(this.#gate, numbered(contested))
    const known = new Set(answer.known)
    const taken = new Set(answer.taken)
    const places = new Map(contested.map((entry, n) => [entry, n]))
    const settlement = settle(departure.entries, (entry) => {
      const n = places.get(entry)
      return n === undefined ? undefined : { isKnown: known.has(n), isTaken: taken.has(n) }
    })
    await this.#claim([...settlement.known, ...settlement.taken], since)
    for (const entry of settlement.known) if (!entry.decided) this.#decideKnown(entry, since)
    for (const entry of settlement.taken) if (!entry.decided) decide(entry)
    if (settlement.accepted.length > 0) await this.#storeAll(settlement.accepted, settlement.suppressed, since)
  }

  /** Stores flows of which none is a duplicate of another; decides those that they suppress, once they are stored. */
  async #storeAll(entries: readonly Entry[], suppressed: readonly Suppressed<Entry>[], since: number): Promise<void> {
    const records = entries.some((entry) => entry.post.records)
    if (isLong(entries)) await turn()
    const outcome = await this.#insert(entries, records)
    if (isLong(entries)) await turn()
    const rows = new Map(outcome.inserted.map((one) => [typeof one === 'string' ? one : one.uuid, one]))
    const numbers = new Set(outcome.known)
    this.#expectNew = rows.size === entries.length
    const stored = new Set<Entry>()
    const known: Entry[] = []
    const unclear: Entry[] = []
    for (const [n, entry] of entries.entries()) {
      const row = rows.get(entry.flow.uuid)
      if (row !== undefined) {
        stored.add(entry)
        this.#decideInserted(entry, row, since)
      } else if (numbers.has(n)) known.push(entry)
      else unclear.push(entry)
    }
    for (const entry of await this.#claim([...known, ...unclear], since)) stored.add(entry)
    for (const entry of known) if (!entry.decided) this.#decideKnown(entry, since)
    // A flow that was neither stored nor known met its match, or its uuid, in a statement that ran beside: ask again next time.
    for (const entry of unclear) if (!entry.decided) decide(entry)
    for (const { entry, by, isMatch } of suppressed) {
      // What stopped the other one may not stop this one: it goes back to the line.
      if (!stored.has(by)) continue
      if (isMatch) this.#decideKnown(entry, since)
      else decide(entry)
    }
  }

  /**
   * Of flows that were not inserted, those that were stored before without anybody being told: they count as inserted now. Asked
   * after the insert, which waits for an earlier attempt that is still under way.
   */
  async #claim(entries: readonly Entry[], since: number): Promise<Entry[]> {
    if (this.#untold.size === 0) return []
    const doubtful = entries.filter((entry) => this.#untold.get(entry.flow.uuid) !== undefined)
    if (doubtful.length === 0) return []
    const records = doubtful.some((entry) => entry.post.records)
    const claimed: Entry[] = []
    for (const [n, row] of await askOwn(this.#gate, numbered(doubtful), records)) {
      const entry = doubtful[n]!
      const untold = this.#untold.get(entry.flow.uuid)
      // The very same flow twice: one of them is the row.
      if (untold === undefined) continue
      this.#decideInserted(entry, row, since, untold.isHeard)
      claimed.push(entry)
    }
    // Not stored after all, and not to be asked for again. Of another flow with its uuid that is not said.
    for (const { decided, flow, key } of doubtful) if (!decided && this.#untold.get(flow.uuid)?.key === key) this.#untold.delete(flow.uuid)
    return claimed
  }

  #decideInserted(entry: Entry, row: Inserted[number], since: number, isHeard = false): void {
    const { post, flow, key } = entry
    this.#untold.delete(flow.uuid)
    if (!isHeard) this.#onStored(flow)
    post.inserted.push(row)
    post.stored.push(entry)
    if (post.failed) {
      this.#untold.add(flow.uuid, key, true)
      decide(entry)
    } else this.#decideKnown(entry, since)
  }

  /** `since`: when the database was asked, as an epoch of what is remembered. */
  #decideKnown(entry: Entry, since: number): void {
    if (entry.key !== null && !this.#untold.hasKey(entry.key)) this.#seen.add(entry.key, since)
    decide(entry)
  }

  async #insert(entries: readonly Entry[], records: boolean): Promise<Outcome> {
    const outgoing = numbered(entries)
    const onDoubt = () => {
      for (const { flow, key } of entries) this.#untold.add(flow.uuid, key, false)
    }
    const unlessKnown = () => insertUnlessKnown(this.#gate, outgoing, records, onDoubt)
    try {
      if (records || !this.#expectNew) return await unlessKnown()
      return await insertNew(this.#gate, outgoing, onDoubt).catch((error) => {
        if ((error as { code?: string }).code !== UNIQUE_VIOLATION) throw error
        return unlessKnown()
      })
    } catch (error) {
      if (isInDoubt(error)) onDoubt()
      throw error
    }
  }

  /** What is stored of the post will come again, and is then to be told. */
  #fail(post: Post, error: unknown): void {
    if (post.failed || post.undecided === 0) return
    post.failed = true
    for (const { flow, key } of post.stored) {
      this.#untold.add(flow.uuid, key, true)
      if (key !== null) this.#seen.delete(key)
    }
    post.reject(error)
  }

  /** A fault of one post must not fail its neighbours. */
  async #storeOneByOne(entries: readonly Entry[]): Promise<void> {
    const posts = new Map<Post, Departure<Entry>>()
    for (const entry of entries) {
      if (entry.decided) continue
      const own = posts.get(entry.post) ?? new Departure<Entry>()
      own.add(entry)
      posts.set(entry.post, own)
    }
    let hindrance: unknown
    for (const [post, own] of posts) {
      try {
        if (hindrance !== undefined) throw hindrance
        await this.#store(own)
      } catch (error) {
        if (concernsAll(error)) hindrance = error
        this.#fail(post, error)
      }
    }
  }
}

/** Then each step takes a while, and other requests pass between any two. */
const isLong = ({ length }: readonly Entry[]) => length > MAX_FLOWS_PER_STATEMENT

const numbered = (entries: readonly Entry[]) => entries.map(({ flow }, n): Outgoing => ({ ...flow, n }))

function decide(entry: Entry): void {
  const { post } = entry
  entry.decided = true
  post.undecided--
  if (post.undecided === 0 && !post.failed) post.resolve(post.inserted)
}

const concernsAll = (error: unknown) => error instanceof DatabaseBusy || error instanceof DatabaseUnavailable

function isRepeat(flow: Flow, seen: Set<string>): boolean {
  const key = repeatKey(flow)
  return seen.size === seen.add(key).size
}
