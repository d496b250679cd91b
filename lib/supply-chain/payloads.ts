import { randomUUID } from 'node:crypto'
import { HttpError } from '../errors.ts'
import { MAX_WAITING_PAYLOAD_BYTES, MIN_WAITING_PAYLOAD_BYTES } from '../limits/limits.ts'
import { Semaphore } from '../limits/semaphore.ts'
import type { Metrics } from '../metrics/index.ts'
import type { RateLimitedLog } from '../observability/rate-limited-log.ts'
import { parseNaive } from '../time/timestamp.ts'
import type { Page, SentPayload } from './payload.ts'
import type { PayloadReader } from './reader.ts'
import type { Kind } from './worker.ts'

const RETRY_AFTER_FULL_SECONDS = 5
const RETRY_AFTER_CEILING_SECONDS = 60

/**
 * The parameters of a route's statement: the header as JSON, and the rows as JSON text, or null to ask whether the rows
 * are needed.
 */
export interface Question {
  readonly header: string
  readonly page: Page | null
  readonly rows: string | null
}

/** Runs the statement. */
export type Ask = (question: Question) => Promise<Buffer | null>

/** The outcome for a payload, with the keys of the answer in wire order (docs/contract.md#findings, #sbom). */
export type Outcome =
  | { readonly status: 'stored'; readonly items: number }
  | { readonly status: 'unchanged' }
  | { readonly status: 'stale'; readonly stored_scanned_at: string }
  | { readonly status: 'staged' | 'duplicate_page'; readonly received: number; readonly total: number }

/** The answers of the statements (`store_findings`, `store_sbom`). */
type Reply =
  | Outcome
  | { readonly status: 'rows wanted' }
  | { readonly status: 'refused'; readonly reason: 'total'; readonly total: number }
  | { readonly status: 'refused'; readonly reason: 'components'; readonly items: number }
  | { readonly status: 'refused'; readonly reason: 'ceiling' }

/** A body as it was sent, for the image of `digest`. */
export type Sent = Pick<SentPayload, 'bytes' | 'isPacked' | 'digest'>

export interface PayloadsOptions {
  reader: PayloadReader
  maxInflatedBytes: number
  metrics: Metrics
  lines: RateLimitedLog
  /** Unix time in milliseconds. */
  now?: () => number
}

/**
 * Stores payloads of findings and SBOMs one at a time. A bounded number of bytes waits; further payloads are refused
 * with 503.
 */
export class Payloads {
  readonly #options: Required<PayloadsOptions>
  readonly #semaphore = new Semaphore({
    maxBytes: MAX_WAITING_PAYLOAD_BYTES,
    leastBytes: MIN_WAITING_PAYLOAD_BYTES,
    retryAfterSeconds: RETRY_AFTER_FULL_SECONDS,
  })

  constructor(options: PayloadsOptions) {
    this.#options = { now: Date.now, ...options }
  }

  /** Number of waiting bodies. */
  get waiting(): number {
    return this.#semaphore.waiting
  }

  /**
   * Stores a payload when the earlier ones are done. `leaver` gets a function to call when the client disconnects.
   * @throws HttpError for a refused payload; 503 at once if too many wait
   */
  async store(kind: Kind, sent: Sent, ask: Ask, leaver: (leave: () => void) => void): Promise<Outcome> {
    const { metrics } = this.#options
    const count = (outcome: string) => metrics.payloads.labels(kind, outcome).inc()
    try {
      const outcome = await this.#inTurn(sent.bytes.length, () => this.#process(kind, sent, ask), leaver)
      count(outcome.status)
      return outcome
    } catch (error) {
      count(error instanceof HttpError ? 'refused' : 'failed')
      throw error
    }
  }

  async #inTurn<T>(bytes: number, work: () => Promise<T>, leaver: (leave: () => void) => void): Promise<T> {
    const end = await this.#semaphore.acquire(bytes, leaver)
    try {
      return await work()
    } finally {
      end()
    }
  }

  async #process(kind: Kind, sent: Sent, ask: Ask): Promise<Outcome> {
    const { reader, maxInflatedBytes, metrics, lines, now } = this.#options
    const { header, page, unreadableTimes, hasList } = await reader.read(kind, {
      ...sent,
      maxInflatedBytes,
      now: now(),
    })
    metrics.unreadableTimes.labels(kind).inc(unreadableTimes)
    if (!hasList) lines.note(`payloads of ${kind} whose list is null or left out were taken as empty`, { payloads: 1 })
    // If the answer of the database is lost, the next attempt is recognised by `post`.
    const told = JSON.stringify({ ...header, post: randomUUID() })
    let reply = replyOf(await ask({ header: told, page, rows: null }))
    if (reply.status === 'rows wanted') reply = replyOf(await ask({ header: told, page, rows: await reader.rows() }))
    return this.#outcome(reply)
  }

  #outcome(reply: Reply): Outcome {
    const { status } = reply
    switch (status) {
      case 'stored':
        return { status, items: reply.items }
      case 'unchanged':
        return { status }
      case 'stale':
        return { status, stored_scanned_at: parseNaive(reply.stored_scanned_at)! }
      case 'staged':
      case 'duplicate_page':
        return { status, received: reply.received, total: reply.total }
      case 'refused':
        throw this.#refusal(reply)
      case 'rows wanted':
        throw new Error('the database wants rows that it was given')
    }
  }

  #refusal(reply: Extract<Reply, { status: 'refused' }>): HttpError {
    if (reply.reason === 'total') return new HttpError(422, `page.total: the pages before said ${reply.total}`)
    if (reply.reason === 'components')
      return new HttpError(422, `components: ${reply.items} in all pages are too many; the set is dropped`)
    this.#options.metrics.stagedSetsRefused.inc()
    const seconds = RETRY_AFTER_CEILING_SECONDS
    return new HttpError(429, `too many SBOMs are half sent; retry in ${seconds} seconds`, {
      'retry-after': String(seconds),
    })
  }
}

const replyOf = (json: Buffer | null) => JSON.parse(json!.toString()) as Reply
