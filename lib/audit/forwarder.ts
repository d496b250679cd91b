import type { Database } from '../db/index.ts'
import type { Metrics } from '../metrics/index.ts'
import type { Reply } from '../net/reply.ts'
import type { Log } from '../observability/log.ts'
import { within } from '../time/within.ts'
import type { Flow } from '../traffic/index.ts'
import { Evaluator } from './evaluator.ts'
import { coverageQuery, type EvaluateRequest, evaluateRequest, hasDirection } from './flow.ts'
import { BoundedQueue } from './queue.ts'
import { BadReply, type PolicyVerdict, readCause, readVerdicts } from './reply.ts'
import { createStore } from './store.ts'

interface ForwarderOptions {
  readonly url: string
  /** Most flows evaluated at once. */
  readonly permits: number
  readonly queueCapacity: number
  /** Per call. */
  readonly timeoutMs: number
  readonly db: Database
  readonly log: Log
  readonly metrics: Metrics
}

/**
 * Warnings with the same text appear once in this time: an evaluator that is down fails thousands of flows a second.
 */
const WARN_EVERY_MS = 10_000

/**
 * Forwards new flows to the policy evaluator and stores its verdicts (docs/contract.md#verdicts). Ingest never waits
 * for it: a flow that finds the queue full is dropped and counted, one whose evaluation fails is lost.
 */
export class AuditForwarder {
  readonly #options: ForwarderOptions
  readonly #evaluator: Evaluator
  readonly #store: ReturnType<typeof createStore>
  readonly #queue: BoundedQueue<Flow>
  readonly #warnedAt = new Map<string, number>()
  #inFlight = 0
  #isClosed = false
  #onIdle: (() => void) | null = null

  constructor(options: ForwarderOptions) {
    this.#options = options
    this.#evaluator = new Evaluator(options.url, options.timeoutMs)
    this.#store = createStore(options.db)
    this.#queue = new BoundedQueue(options.queueCapacity)
  }

  /** Free permits: the limit minus the flows that are being evaluated. */
  get availablePermits(): number {
    return this.#options.permits - this.#inFlight
  }

  get waiting(): number {
    return this.#queue.length
  }

  /** Queues a flow that was just stored. Returns at once and never throws. */
  offer(flow: Flow): void {
    if (!hasDirection(flow) && coverageQuery(flow) === null) return
    if (this.#isClosed || !this.#queue.push(flow)) this.#options.metrics.auditDropped.inc()
    else this.#next()
  }

  /**
   * Evaluates queued flows for up to `maxMs`; the rest, and flows offered later, are counted as dropped. Never rejects.
   */
  async drain(maxMs: number): Promise<void> {
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
    this.#checkIdle()
    await within(idle, maxMs)
    this.#isClosed = true
    const shed = this.#queue.clear()
    this.#options.metrics.auditDropped.inc(shed)
    if (shed + this.#inFlight > 0)
      this.#options.log.warn({ shed, cut: this.#inFlight }, 'flows were not evaluated: shutting down')
    this.#evaluator.close()
  }

  #next(): void {
    while (this.#inFlight < this.#options.permits && this.#queue.length > 0) {
      this.#inFlight++
      this.#process(this.#queue.shift()!).then(() => {
        this.#inFlight--
        this.#next()
        this.#checkIdle()
      })
    }
  }

  #checkIdle(): void {
    if (this.#inFlight === 0 && this.#queue.length === 0) this.#onIdle?.()
  }

  /** Never rejects. */
  async #process(flow: Flow): Promise<void> {
    await this.#classify(flow)
    if (!hasDirection(flow)) return
    const request = evaluateRequest(flow)
    const verdicts = await this.#evaluate(request)
    if (verdicts === null || verdicts.length === 0) return
    try {
      await this.#store.verdicts({ request, verdicts })
      this.#options.metrics.auditVerdicts.inc(verdicts.length)
    } catch (error) {
      this.#warn('verdicts could not be stored and are lost', { code: (error as { code?: string }).code })
    }
  }

  /** Returns the verdicts, null without a usable answer. */
  async #evaluate(request: EvaluateRequest): Promise<PolicyVerdict[] | null> {
    const { log, metrics } = this.#options
    let reply: Reply
    try {
      reply = await this.#evaluator.post('/evaluate', request)
    } catch (error) {
      metrics.auditFlows.inc({ outcome: 'unreachable' })
      log.debug({ err: error }, 'the evaluator did not answer')
      return null
    }
    try {
      if (reply.status < 200 || reply.status > 299) throw new BadReply(`status ${reply.status}`)
      const verdicts = readVerdicts(reply.text)
      metrics.auditFlows.inc({ outcome: 'evaluated' })
      return verdicts
    } catch (error) {
      metrics.auditFlows.inc({ outcome: 'refused' })
      this.#warn('the answer of the evaluator is invalid', { reason: (error as Error).message })
      return null
    }
  }

  /**
   * Queries which policies stopped a dropped flow. If the evaluator does not support the query, the cause stays null.
   */
  async #classify(flow: Flow): Promise<void> {
    const query = coverageQuery(flow)
    if (query === null) return
    try {
      const { status, text } = await this.#evaluator.get('/policy-coverage', query)
      const cause = status === 200 ? readCause(text) : null
      const { uuid, time_stamp } = flow
      if (cause !== null) await this.#store.cause({ uuid, time_stamp, cause })
    } catch (error) {
      this.#options.log.debug({ err: error }, 'the cause of a drop is unknown')
    }
  }

  #warn(message: string, fields: object): void {
    const now = performance.now()
    if (now - (this.#warnedAt.get(message) ?? Number.NEGATIVE_INFINITY) < WARN_EVERY_MS) return
    this.#warnedAt.set(message, now)
    this.#options.log.warn(fields, message)
  }
}
