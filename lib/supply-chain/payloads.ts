import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { wireTime } from '../http/request/fields.ts'
import { MAX_WAITING_PAYLOAD_BYTES, MIN_WAITING_PAYLOAD_BYTES } from '../limits/limits.ts'
import { Semaphore } from '../limits/semaphore.ts'
import type { Metrics } from '../metrics/index.ts'
import type { RateLimitedLog } from '../observability/rate-limited-log.ts'
import { parseNaive } from '../time/timestamp.ts'
import type { Page, ReportKind, SentPayload } from './payload.ts'
import type { PayloadReader } from './reader.ts'

const RETRY_AFTER_FULL_SECONDS = 5
const RETRY_AFTER_CEILING_SECONDS = 60

/**
 * Runs the statement of a route with the header as JSON, and the rows as JSON text, or null to ask whether the rows are
 * needed.
 */
export type RunStatement = (values: {
  readonly header: string
  readonly page: Page | null
  readonly rows: string | null
}) => Promise<Buffer | null>

const count = z.int().min(0)

const Stored = z.strictObject({ status: z.literal('stored'), items: count.describe('Rows of the payload.') })
const Unchanged = z.strictObject({ status: z.literal('unchanged') })
const Stale = z.strictObject({
  status: z.literal('stale'),
  stored_scanned_at: wireTime.describe('Of what is stored, or half sent, and not older.'),
})

/** The outcome for a payload (docs/contract.md#findings, #sbom). */
export const PayloadOutcome = z.union([Stored, Unchanged, Stale]).meta({ id: 'PayloadOutcome' })

const Pages = { received: count.describe('Pages held.'), total: count }

/** The outcome for one page of a set. */
export const DuplicatePage = z.strictObject({ status: z.literal('duplicate_page'), ...Pages })
export const StagedPage = z.strictObject({ status: z.literal('staged'), ...Pages }).meta({ id: 'StagedPage' })

type AnyOutcome = z.output<typeof PayloadOutcome | typeof DuplicatePage | typeof StagedPage>

/** The answers of the statements (`store_findings`, `store_sbom`). The keys of outcomes are in wire order. */
type Reply =
  | AnyOutcome
  | { readonly status: 'rows wanted' }
  | { readonly status: 'refused'; readonly reason: 'total'; readonly total: number }
  | { readonly status: 'refused'; readonly reason: 'components'; readonly items: number }
  | { readonly status: 'refused'; readonly reason: 'ceiling' }

/** A body as it was sent, for the image of `digest`. */
export type Sent = Pick<SentPayload, 'bytes' | 'isPacked' | 'digest'>

interface PayloadsOptions {
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
  async store(
    kind: ReportKind,
    sent: Sent,
    run: RunStatement,
    leaver: (leave: () => void) => void,
  ): Promise<AnyOutcome> {
    const { metrics } = this.#options
    let counted = 'failed'
    let release = () => {}
    try {
      release = await this.#semaphore.acquire(sent.bytes.length, leaver)
      const outcome = await this.#process(kind, sent, run)
      counted = outcome.status
      return outcome
    } catch (error) {
      if (error instanceof HttpError) counted = 'refused'
      throw error
    } finally {
      release()
      metrics.payloads.labels(kind, counted).inc()
    }
  }

  async #process(kind: ReportKind, sent: Sent, run: RunStatement): Promise<AnyOutcome> {
    const { reader, maxInflatedBytes, metrics, lines, now } = this.#options
    const { header, page, unreadableTimes, hasList } = await reader.read(kind, {
      ...sent,
      maxInflatedBytes,
      now: now(),
    })
    metrics.unreadableTimes.labels(kind).inc(unreadableTimes)
    if (!hasList) lines.note(`payloads of ${kind} whose list is null or left out were taken as empty`, { payloads: 1 })
    // If the answer of the database is lost, the next attempt is recognised by `post`.
    const document = JSON.stringify({ ...header, post: randomUUID() })
    let reply = replyOf(await run({ header: document, page, rows: null }))
    if (reply.status === 'rows wanted')
      reply = replyOf(await run({ header: document, page, rows: await reader.rows() }))
    return this.#outcome(reply)
  }

  #outcome(reply: Reply): AnyOutcome {
    switch (reply.status) {
      case 'stale':
        return { ...reply, stored_scanned_at: parseNaive(reply.stored_scanned_at)! }
      case 'refused':
        throw this.#refusal(reply)
      case 'rows wanted':
        throw new Error('the database wants rows that it was given')
      default:
        return reply
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
