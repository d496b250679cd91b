/** What the evaluator makes of the images that run (supply-chain, Image-trust response; interop-supply-chain 3.8). */
import type { Config } from '../config.ts'
import { clientGone } from '../http/errors.ts'
import type { Log } from '../observability/log.ts'
import { Slice } from '../process/event-loop.ts'
import { unavailable, written } from './answer.ts'
import { Line } from './line.ts'
import { ListScan } from './list-scan.ts'
import { ask } from './question.ts'
import { readResult, type TrustFilter } from './result.ts'
import { Tally } from './tally.ts'
import { BadAnswer, Unavailable, WHY } from './unavailable.ts'

export { ImageTrustAnswer, MAX_RESULTS } from './answer.ts'
export { VERDICTS } from './result.ts'

/** From the start of a question to the last byte of its answer. */
const TIMEOUT_MS = 10_000
export const MAX_ANSWER_BYTES = 16_777_216

export interface ImageTrustOptions {
  /** Of the evaluator; null for none. */
  readonly url: string | null
  /** For reading, which the evaluator knows us by; null sends none. */
  readonly token: () => string | null
  readonly log: Log
  readonly timeoutMs?: number
}

export class ImageTrust {
  readonly #options: ImageTrustOptions
  readonly #line = new Line()

  constructor(options: ImageTrustOptions) {
    this.#options = options
  }

  /** Whether there is anybody to ask. */
  get isConfigured(): boolean {
    return this.#options.url !== null
  }

  /**
   * The answer to a query, as JSON: asks the evaluator, keeps what matches. Whatever is wrong with the evaluator is an answer too. `left` ends
   * the question when nobody waits for the answer any more.
   * @throws HttpError 499 then
   */
  async read(filter: TrustFilter, limit: number, left?: AbortSignal): Promise<Buffer | string> {
    const { url, token, log, timeoutMs = TIMEOUT_MS } = this.#options
    try {
      if (url === null) throw new Unavailable(WHY.notConfigured)
      const { namespace, verdict } = filter
      const question = { url, token: token(), namespace, verdict, timeoutMs, maxBytes: MAX_ANSWER_BYTES, signal: left }
      const tally = new Tally(filter, limit)
      const evaluatedAt = await count(ask(question), tally, this.#line.join())
      return await written(tally, evaluatedAt, new Slice())
    } catch (error) {
      if (left?.aborted) throw clientGone()
      if (!(error instanceof Unavailable)) throw error
      if (url !== null) log.warn({ err: error.cause }, `image trust is not available: ${error.message}`)
      return unavailable(error.message)
    }
  }
}

/** Counts what comes, and returns when it was evaluated. An answer that is not valid is read on: that it is too large tells more. */
async function count(chunks: AsyncIterable<Buffer>, tally: Tally, turn: () => Promise<void>): Promise<string | null> {
  const scan = new ListScan('results', (element) => tally.add(readResult(element)))
  let fault: unknown = null
  for await (const chunk of chunks) {
    if (fault !== null) continue
    await turn()
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
    if (error instanceof BadAnswer) throw new Unavailable(WHY.invalid, { cause: error })
    throw error
  }
}

/** Of what is outside the list. An evaluator may write an empty list as null; without any it is none. */
function evaluatedAtOf(answer: unknown): string | null {
  const { results, evaluatedAt = null } = (answer ?? {}) as Record<string, unknown>
  if (results !== null && !Array.isArray(results)) throw new BadAnswer('results: no list')
  if (evaluatedAt !== null && typeof evaluatedAt !== 'string') throw new BadAnswer('evaluatedAt: no text')
  return evaluatedAt
}

/** The token that the evaluator knows the broker by: that for reading, else the shared one (interop-supply-chain 3.8). */
export function evaluatorToken(tokens: Config['tokens']): string | null {
  const value = (variable: string) => tokens.find((one) => one.variable === variable)?.value
  return value('BROKER_TOKEN_READ') ?? value('BROKER_AUTH_TOKEN') ?? null
}
