/** Passes on the evaluator's judgement of the running images (docs/contract.md#image-trust). */
import type { Config } from '../config/index.ts'
import { clientGone } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import type { Log } from '../observability/log.ts'
import { renderAnswer, unavailable } from './answer.ts'
import { ReadingOrder } from './reading-order.ts'
import { requestResults } from './request.ts'
import type { TrustFilter } from './result.ts'
import { scanResults } from './scan.ts'
import { Tally } from './tally.ts'
import { REASON, Unavailable } from './unavailable.ts'
import { WorkloadTrust } from './workload-trust.ts'

export { ImageTrustAnswer, MAX_RESULTS } from './answer.ts'
export { VERDICTS } from './result.ts'
export { MAX_NAMESPACE_BYTES } from './workload-trust.ts'

/** From the start of a request to the last byte of its answer. */
const TIMEOUT_MS = 10_000
export const MAX_ANSWER_BYTES = 16_777_216

interface ImageTrustOptions {
  /** The base URL of the evaluator; null without one. */
  readonly url: string | null
  /** The token for the evaluator; null sends none. */
  readonly token: () => string | null
  readonly log: Log
  readonly timeoutMs?: number
  /** For a namespace of `workloads`. */
  readonly namespaceTimeoutMs?: number
}

export class ImageTrust {
  readonly #options: ImageTrustOptions
  readonly #order = new ReadingOrder()
  /** The judgement of single workloads, kept for a short while. */
  readonly workloads: WorkloadTrust

  constructor(options: ImageTrustOptions) {
    this.#options = options
    const { url, token, log, namespaceTimeoutMs } = options
    this.workloads = new WorkloadTrust({ url, token, log, order: this.#order, timeoutMs: namespaceTimeoutMs })
  }

  /** Whether an evaluator is configured. */
  get isConfigured(): boolean {
    return this.#options.url !== null
  }

  /**
   * Asks the evaluator and returns the answer to a query as JSON. A failing evaluator gives an answer with `available:
   * false`. `disconnected` ends the request when the client has gone.
   * @throws HttpError 499 if the client has gone
   */
  async read(filter: TrustFilter, limit: number, disconnected?: AbortSignal): Promise<Buffer | string> {
    const { url, token, log, timeoutMs = TIMEOUT_MS } = this.#options
    try {
      if (url === null) throw new Unavailable(REASON.notConfigured)
      const bounds = { timeoutMs, maxBytes: MAX_ANSWER_BYTES, signal: disconnected }
      const chunks = requestResults({ ...filter, url, token: token(), ...bounds })
      const tally = new Tally(filter, limit)
      const evaluatedAt = await scanResults(chunks, (result) => tally.add(result), this.#order.join())
      return await renderAnswer(tally, evaluatedAt, new Slice())
    } catch (error) {
      if (disconnected?.aborted) throw clientGone()
      if (!(error instanceof Unavailable)) throw error
      if (url !== null) log.warn({ err: error.cause }, `image trust is not available: ${error.message}`)
      return unavailable(error.message)
    }
  }
}

/** The token for the evaluator: the read token, else the shared one. */
export function evaluatorToken(tokens: Config['tokens']): string | null {
  const value = (variable: string) => tokens.find((one) => one.variable === variable)?.value
  return value('BROKER_TOKEN_READ') ?? value('BROKER_AUTH_TOKEN') ?? null
}
