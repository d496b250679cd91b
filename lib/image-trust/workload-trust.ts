/**
 * The evaluator's judgement of single workloads, for their profiles (docs/contract.md#workload-profiles). A page of
 * profiles asks for many workloads of a namespace, so the results of a whole namespace are read at once and kept for a
 * short while. Nobody's request ends such a read: others may wait for it.
 */
import type { z } from 'zod'
import type { Log } from '../observability/log.ts'
import type { ImageTrustAnswer } from './answer.ts'
import type { ReadingOrder } from './reading-order.ts'
import { requestResults } from './request.ts'
import type { TrustResult } from './result.ts'
import { scanResults } from './scan.ts'
import { Tally } from './tally.ts'
import { REASON, Unavailable } from './unavailable.ts'

const NAMESPACE_TIMEOUT_MS = 2_000
/** Bytes of the answer about a namespace; memory to reserve while it is read. */
export const MAX_NAMESPACE_BYTES = 1_048_576
const MAX_RESULTS = 20
const KEPT_MS = 30_000
const KEPT_UNAVAILABLE_MS = 10_000
const MAX_NAMESPACES = 128
/** Bytes of the answers that are kept. */
const MAX_KEPT_BYTES = 16_777_216

type Answer = z.output<typeof ImageTrustAnswer>

interface Workload {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

interface Known {
  readonly evaluatedAt: string | null
  /** By workload, see `keyOf`. */
  readonly tallies: ReadonlyMap<string, Tally>
  /** Why nothing is known; null where it is. */
  readonly reason: string | null
  readonly bytes: number
  /** Of `performance.now`. */
  readonly until: number
}

const NOTHING = { evaluatedAt: null, total: 0, wouldDeny: 0, unknown: 0, trusted: 0, policies: [], results: [] }
const keyOf = (kind: string, name: string) => `${kind.toLowerCase()}/${name}`

interface WorkloadTrustOptions {
  /** The base URL of the evaluator; null without one. */
  readonly url: string | null
  readonly token: () => string | null
  readonly log: Log
  readonly order: ReadingOrder
  readonly timeoutMs?: number | undefined
}

export class WorkloadTrust {
  readonly #options: WorkloadTrustOptions
  /** The newest last. */
  readonly #known = new Map<string, Known>()
  #bytes = 0
  readonly #reads = new Map<string, Promise<Known>>()

  constructor(options: WorkloadTrustOptions) {
    this.#options = options
  }

  /** Whether an answer needs a new read of the namespace, which takes up to `MAX_NAMESPACE_BYTES` of memory. */
  hasToAsk(namespace: string): boolean {
    return this.#options.url !== null && this.#kept(namespace) === null && !this.#reads.has(namespace)
  }

  /** Returns the results of a workload, at most 20. It never throws: a failing evaluator gives `available: false`. */
  async read({ namespace, kind, name }: Workload): Promise<Answer> {
    if (this.#options.url === null) return unavailable(REASON.notConfigured)
    const { reason, evaluatedAt, tallies } = this.#kept(namespace) ?? (await this.#shared(namespace))
    if (reason !== null) return unavailable(reason)
    const tally = tallies.get(keyOf(kind, name))
    if (!tally) return { available: true, ...NOTHING, evaluatedAt, truncated: false }
    const { total, WouldDeny: wouldDeny, Unknown: unknown, Trusted: trusted } = tally.counts
    const [policies, results] = [[...tally.policies].sort(), [...tally.results()]]
    const counts = { total, wouldDeny, unknown, trusted }
    return { available: true, evaluatedAt, ...counts, policies, results, truncated: total > results.length }
  }

  #kept(namespace: string): Known | null {
    const known = this.#known.get(namespace)
    return known && known.until > performance.now() ? known : null
  }

  #shared(namespace: string): Promise<Known> {
    const running = this.#reads.get(namespace)
    if (running) return running
    const read = this.#ask(namespace)
      .then((known) => this.#keep(namespace, known))
      .finally(() => this.#reads.delete(namespace))
    this.#reads.set(namespace, read)
    return read
  }

  #keep(namespace: string, known: Known): Known {
    this.#forget(namespace)
    this.#known.set(namespace, known)
    this.#bytes += known.bytes
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_NAMESPACES && this.#bytes <= MAX_KEPT_BYTES) break
      this.#forget(oldest)
    }
    return known
  }

  #forget(namespace: string): void {
    this.#bytes -= this.#known.get(namespace)?.bytes ?? 0
    this.#known.delete(namespace)
  }

  async #ask(namespace: string): Promise<Known> {
    const { url, token, log, order, timeoutMs = NAMESPACE_TIMEOUT_MS } = this.#options
    const tallies = new Map<string, Tally>()
    let bytes = 0
    const take = (result: TrustResult) => {
      const slash = result.workload.indexOf('/')
      if (slash < 0) return
      const [kind, name] = [result.workload.slice(0, slash), result.workload.slice(slash + 1)]
      const filter = { namespace, verdict: null, workloadKind: kind, workloadName: name }
      const key = keyOf(kind, name)
      const tally = tallies.get(key) ?? new Tally(filter, MAX_RESULTS)
      tally.add(result)
      tallies.set(key, tally)
    }
    try {
      const bounds = { timeoutMs, maxBytes: MAX_NAMESPACE_BYTES }
      const chunks = requestResults({ namespace, verdict: null, url: url!, token: token(), ...bounds })
      const counted = eachChunk(chunks, (chunk) => {
        bytes += chunk.length
      })
      const evaluatedAt = await scanResults(counted, take, order.join())
      return { evaluatedAt, tallies, reason: null, bytes, until: performance.now() + KEPT_MS }
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      log.warn({ err: error.cause, namespace }, `image trust is not available: ${error.message}`)
      const until = performance.now() + KEPT_UNAVAILABLE_MS
      return { evaluatedAt: null, tallies: new Map(), reason: error.message, bytes: 0, until }
    }
  }
}

const unavailable = (reason: string): Answer => ({ available: false, reason, ...NOTHING, truncated: false })

async function* eachChunk(chunks: AsyncIterable<Buffer>, note: (chunk: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    note(chunk)
    yield chunk
  }
}
