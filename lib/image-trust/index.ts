/** Passes on the evaluator's judgement of the running images (docs/contract.md#image-trust). */
import type { Config } from '../config/index.ts'
import { clientGone } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import type { Log } from '../observability/log.ts'
import { renderAnswer, unavailable } from './answer.ts'
import { ListScan } from './list-scan.ts'
import { ReadingOrder } from './reading-order.ts'
import { requestResults } from './request.ts'
import { readResult, type TrustFilter } from './result.ts'
import { Tally } from './tally.ts'
import { BadAnswer, REASON, Unavailable } from './unavailable.ts'

export { ImageTrustAnswer, MAX_RESULTS } from './answer.ts'
export { VERDICTS } from './result.ts'

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
}

export class ImageTrust {
  readonly #options: ImageTrustOptions
  readonly #order = new ReadingOrder()

  constructor(options: ImageTrustOptions) {
    this.#options = options
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
      const evaluatedAt = await count(chunks, tally, this.#order.join())
      return await renderAnswer(tally, evaluatedAt, new Slice())
    } catch (error) {
      if (disconnected?.aborted) throw clientGone()
      if (!(error instanceof Unavailable)) throw error
      if (url !== null) log.warn({ err: error.cause }, `image trust is not available: ${error.message}`)
      return unavailable(error.message)
    }
  }
}

/**
 * Counts the results as they arrive and returns the time of their evaluation. An invalid answer is read to its end,
 * since "too large" is the more useful reason.
 */
async function count(
  chunks: AsyncIterable<Buffer>,
  tally: Tally,
  waitForTurn: () => Promise<void>,
): Promise<string | null> {
  const scan = new ListScan('results', (element) => tally.add(readResult(element)))
  let fault: unknown = null
  for await (const chunk of chunks) {
    if (fault !== null) continue
    await waitForTurn()
    try {
      scan.push(chunk)
    } catch (error) {
      fault = error
    }
  }
  try {
    if (fault !== null) throw fault
    return evaluatedAtOf(scan.end())
  } catch (error) {
    if (error instanceof BadAnswer) throw new Unavailable(REASON.invalid, { cause: error })
    throw error
  }
}

/**
 * Reads the rest of the body, outside the list. The evaluator may write an empty list as null, but the key has to be
 * there.
 */
function evaluatedAtOf(answer: unknown): string | null {
  const { results, evaluatedAt = null } = (answer ?? {}) as Record<string, unknown>
  if (results !== null && !Array.isArray(results)) throw new BadAnswer('results: no list')
  if (evaluatedAt !== null && typeof evaluatedAt !== 'string') throw new BadAnswer('evaluatedAt: no text')
  return evaluatedAt
}

/** The token for the evaluator: the read token, else the shared one. */
export function evaluatorToken(tokens: Config['tokens']): string | null {
  const value = (variable: string) => tokens.find((one) => one.variable === variable)?.value
  return value('BROKER_TOKEN_READ') ?? value('BROKER_AUTH_TOKEN') ?? null
}
