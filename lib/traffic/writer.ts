import { DatabaseBusy, DatabaseUnavailable, type Gate } from '../db/index.ts'
import { canonicalize, type Flow, flowKey, isDuplicate, pairKey, repeatKey } from './flow.ts'
import { insertNew, insertUnlessKnown, type Outcome, type Outgoing } from './insert.ts'
import type { SeenFlows } from './seen.ts'

const LANES = 2
/** A statement is filled with whole posts up to this many flows; a larger post travels alone. */
const MAX_FLOWS_PER_STATEMENT = 1_000
const MAX_WAITING_FLOWS = 50_000
const UNIQUE_VIOLATION = '23505'

/** What became of a post: the inserted flows, as uuids or as whole records, in no order. */
export type Inserted = Outcome['inserted']

/** A post on its way: resolved when each of its flows is stored or known to be a duplicate. */
interface Post {
  undecided: number
  failed: boolean
  readonly records: boolean
  readonly inserted: Inserted
  readonly resolve: (inserted: Inserted) => void
  readonly reject: (error: unknown) => void
}

interface Entry {
  /** Place in the order of arrival. */
  readonly seq: number
  readonly post: Post
  readonly flow: Flow
  readonly key: string | null
  readonly pair: string
  /** How often it had to wait for an earlier flow that it may be a duplicate of. */
  waits: number
  /** In a statement that inserts it, or was. */
  sent: boolean
  decided: boolean
}

/**
 * Writes flows, each once (core-telemetry, Deduplication; interop-core section 3). Posts that arrive while a statement is in
 * flight leave together in the next. The outcome is that of posting every flow in turn: a flow that could be a duplicate of
 * an earlier one whose fate is still open waits for it, and an earlier one that was not stored suppresses nothing.
 * The unique indexes decide between processes.
 */
export class FlowWriter {
  readonly #gate: Gate
  readonly #seen: SeenFlows
  #line: Entry[] = []
  #statements = 0
  #gathering = false
  /** Whether the flows that get this far have lately all been new. */
  #expectNew = false
  readonly #openPairs = new Map<string, Entry[]>()
  readonly #openUuids = new Map<string, Entry[]>()
  #arrivals = 0

  constructor(gate: Gate, seen: SeenFlows) {
    this.#gate = gate
    this.#seen = seen
  }

  /** Stores what is new of `flows` (changed in place: addresses become canonical). Resolves after commit. */
  write(flows: Flow[], options: { records: boolean }): Promise<Inserted> {
    const repeats = new Set<string>()
    const fresh: [flow: Flow, key: string | null][] = []
    this.#seen.expire()
    for (const flow of flows) {
      const key = flowKey(canonicalize(flow))
      if (key === null ? isRepeat(flow, repeats) : this.#seen.has(key)) continue
      fresh.push([flow, key])
    }
    if (fresh.length === 0) return Promise.resolve([])
    if (this.#line.length > MAX_WAITING_FLOWS) return Promise.reject(new DatabaseUnavailable('too many flows are waiting', 'LINE_FULL'))
    return new Promise((resolve, reject) => {
      const post: Post = { undecided: fresh.length, failed: false, records: options.records, inserted: [], resolve, reject }
      for (const [flow, key] of fresh)
        this.#line.push({ seq: this.#arrivals++, post, flow, key, pair: pairKey(flow), waits: 0, sent: false, decided: false })
      if (this.#statements === 0) this.#depart()
      else if (this.#statements < LANES && !this.#gathering) this.#gather()
    })
  }

  // With a statement under way, what else arrives in this turn of the event loop shares the free lane.
  #gather(): void {
    this.#gathering = true
    setImmediate(() => {
      this.#gathering = false
      if (this.#statements < LANES) this.#depart()
    })
  }

  #depart(): void {
    const sent: Entry[] = []
    const held: Entry[] = []
    const behind: Entry[] = []
    let taken = 0
    for (const entry of this.#line) {
      if (sent.length >= MAX_FLOWS_PER_STATEMENT && entry.post !== sent.at(-1)?.post) break
      taken++
      if (entry.post.failed) continue
      if (entry.key !== null && this.#seen.has(entry.key)) {
        decide(entry)
        continue
      }
      if (!this.#mustWait(entry)) {
        entry.sent = true
        sent.push(entry)
      }
      // Who waits again is looked for in the table meanwhile, so that many duplicates of one flow are soon settled; ever more
      // rarely, since each flow of a long chain waits for the fate of the one before.
      else if (isPowerOfTwo(entry.waits++)) held.push(entry)
      else behind.push(entry)
      this.#open(entry)
    }
    this.#closeAll(behind)
    this.#line = [...behind, ...this.#line.slice(taken)]
    if (sent.length + held.length > 0) this.#run(sent, held)
  }

  /**
   * Whether an earlier flow, of this process and undecided, could make this one a duplicate; or, while it waits itself, be made
   * one by this. Only earlier ones count: two that wait for each other would do so for ever.
   */
  #mustWait({ seq, flow, pair }: Entry): boolean {
    if (this.#openUuids.get(flow.uuid)?.some((other) => other.seq < seq)) return true
    const couldRepeat = (other: Entry) =>
      other.seq < seq && (isDuplicate(flow, other.flow) || (!other.sent && isDuplicate(other.flow, flow)))
    // From the end: in a chain, the one to wait for is the one before.
    return this.#openPairs.get(pair)?.findLast(couldRepeat) !== undefined
  }

  #open(entry: Entry): void {
    append(this.#openUuids, entry.flow.uuid, entry)
    append(this.#openPairs, entry.pair, entry)
  }

  // The last to be opened first: they stand at the ends of their lists.
  #closeAll(entries: readonly Entry[]): void {
    for (let i = entries.length - 1; i >= 0; i--) {
      const entry = entries[i]!
      remove(this.#openUuids, entry.flow.uuid, entry)
      remove(this.#openPairs, entry.pair, entry)
    }
  }

  /** Never rejects. */
  async #run(sent: Entry[], held: Entry[]): Promise<void> {
    this.#statements++
    try {
      await this.#store(sent, held)
    } catch (error) {
      if (concernsAll(error)) for (const { post } of [...sent, ...held]) fail(post, error)
      else await this.#storeOneByOne(sent, held)
    }
    this.#closeAll(held)
    this.#closeAll(sent)
    this.#statements--
    const undecided = held.filter((entry) => !entry.decided)
    if (undecided.length > 0) this.#line = [...undecided, ...this.#line].sort((a, b) => a.seq - b.seq)
    while (this.#line.length > 0 && this.#statements < LANES) {
      const before = this.#statements
      this.#depart()
      if (this.#statements === before) break
    }
  }

  async #store(sent: Entry[], held: Entry[]): Promise<void> {
    const records = sent.some((entry) => entry.post.records)
    const outgoing = [
      ...sent.map(({ flow }, n): Outgoing => ({ ...flow, n })),
      ...held.map(({ flow }, i): Outgoing => ({ ...flow, n: sent.length + i, hold: true })),
    ]
    const outcome = await this.#insert(outgoing, records, held.length > 0)
    const stored = new Map(outcome.inserted.map((one) => [typeof one === 'string' ? one : one.uuid, one]))
    const known = new Set(outcome.known)
    if (held.length === 0) this.#expectNew = stored.size === sent.length
    for (const [n, entry] of sent.entries()) {
      const row = stored.get(entry.flow.uuid)
      if (row !== undefined) entry.post.inserted.push(row)
      // A flow that was neither stored nor known met its match, or its uuid, in a statement that ran beside: ask again next time.
      if (entry.key !== null && (row !== undefined || known.has(n))) this.#seen.add(entry.key)
      decide(entry)
    }
    for (const [i, entry] of held.entries()) {
      if (!known.has(sent.length + i)) continue
      if (entry.key !== null) this.#seen.add(entry.key)
      decide(entry)
    }
  }

  async #insert(outgoing: Outgoing[], records: boolean, ask: boolean): Promise<Outcome> {
    if (ask || records || !this.#expectNew) return insertUnlessKnown(this.#gate, outgoing, records)
    try {
      return await insertNew(this.#gate, outgoing)
    } catch (error) {
      if ((error as { code?: string }).code !== UNIQUE_VIOLATION) throw error
      return insertUnlessKnown(this.#gate, outgoing, records)
    }
  }

  /** A fault of one post must not fail its neighbours. */
  async #storeOneByOne(sent: Entry[], held: Entry[]): Promise<void> {
    for (const post of new Set([...sent, ...held].map((entry) => entry.post))) {
      const own = (entry: Entry) => entry.post === post
      try {
        await this.#store(sent.filter(own), held.filter(own))
      } catch (error) {
        fail(post, error)
      }
    }
  }
}

function append(entries: Map<string, Entry[]>, key: string, entry: Entry): void {
  const others = entries.get(key)
  if (others) others.push(entry)
  else entries.set(key, [entry])
}

function remove(entries: Map<string, Entry[]>, key: string, entry: Entry): void {
  const others = entries.get(key)!
  if (others.length === 1) entries.delete(key)
  else others.splice(others.lastIndexOf(entry), 1)
}

function decide(entry: Entry): void {
  const { post } = entry
  entry.decided = true
  post.undecided--
  if (post.undecided === 0 && !post.failed) post.resolve(post.inserted)
}

function fail(post: Post, error: unknown): void {
  if (post.failed) return
  post.failed = true
  post.reject(error)
}

const isPowerOfTwo = (n: number) => n > 0 && (n & (n - 1)) === 0

const concernsAll = (error: unknown) => error instanceof DatabaseBusy || error instanceof DatabaseUnavailable

function isRepeat(flow: Flow, seen: Set<string>): boolean {
  const key = repeatKey(flow)
  return seen.size === seen.add(key).size
}
