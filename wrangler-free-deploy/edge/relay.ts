/**
 * Streams one request to the broker and its answer back: only bytes in transit between the two sockets are held, and
 * each side is read only as fast as the other accepts data.
 */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { HttpError, tooLarge } from '../../lib/errors.ts'
import { freeBuffer, MIN_BODY_BYTES } from '../../lib/http/request/free-buffer.ts'
import { cut } from '../../lib/http/server/reset-connection.ts'
import { answerText } from './answer.ts'
import type { Exchange } from './exchanges.ts'
import { answerFields, requestFields } from './headers.ts'
import type { Metrics } from './metrics.ts'
import { maxBodyBytesOf } from './target.ts'
import type { Upstream } from './upstream.ts'

/** Most requests in progress or waiting for a connection to the broker. */
export const MAX_UNDER_WAY = 1_024
/** Above this size, creating a string costs more. */
const MAX_STRING_BYTES = 64 * 1024
const HTTP_OK = 200
const HTTP_NO_CONTENT = 204
const HTTP_NOT_MODIFIED = 304
const HTTP_BAD_REQUEST = 400
const MAX_STATUS = 599
const UNPASSABLE = new HttpError(400, 'a header field holds what cannot be passed on')

export interface RelayOptions {
  readonly upstream: Upstream
  readonly metrics: Metrics
  /** The current token to add; null if there is none. */
  readonly token: () => string | null
  readonly connectTimeoutMs: number
  readonly firstByteTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly draining: () => boolean
}

/** Failures of the broker, with the answer to the client unless its head was already sent. */
const FAULTS = {
  unreachable: new HttpError(502, 'the broker cannot be reached'),
  nonsense: new HttpError(502, 'the broker gave no valid answer'),
  timeout: new HttpError(504, 'the broker did not answer in time'),
  cut: new HttpError(502, 'the answer of the broker was cut'),
  full: new HttpError(503, `more than ${MAX_UNDER_WAY} requests are under way; retry in a moment`, {
    'retry-after': '1',
  }),
}
type Fault = keyof typeof FAULTS

/** Relays the requests that the gate accepted. */
export function createRelay(options: RelayOptions): (exchange: Exchange) => void {
  let underWay = 0
  const ownFields = () => {
    const token = options.token()
    return ['via', '1.1 edge', ...(token === null ? [] : ['authorization', `Bearer ${token}`])]
  }
  const onOver = () => {
    underWay--
  }
  return (exchange) => {
    const passage = new Passage(exchange, options, onOver)
    underWay++
    if (underWay > MAX_UNDER_WAY) passage.fail('full')
    else passage.begin(ownFields())
  }
}

class Passage {
  readonly #exchange: Exchange
  readonly #incoming: IncomingMessage
  readonly #outgoing: ServerResponse
  readonly #options: RelayOptions
  readonly #onOver: () => void
  #fields: readonly string[] = []
  #question: ClientRequest | null = null
  #answer: IncomingMessage | null = null
  #isAgain = false
  /** Bytes read on the connection before this request: kept connections have carried other answers. */
  #readBefore = 0
  #timer: NodeJS.Timeout | undefined
  #isOver = false
  /** Whether the answer is large enough to free its bytes early. */
  #isLarge = false

  constructor(exchange: Exchange, options: RelayOptions, onOver: () => void) {
    this.#exchange = exchange
    this.#incoming = exchange.incoming
    this.#outgoing = exchange.outgoing
    this.#options = options
    this.#onOver = onOver
    exchange.onAnswerEnd = () => this.#giveUp()
  }

  begin(own: readonly string[]): void {
    const { rawHeaders, headers } = this.#incoming
    this.#fields = [...requestFields(rawHeaders, headers.connection), ...own, 'x-request-id', this.#exchange.requestId]
    try {
      if (this.#incoming.method === 'POST') this.#askWithBody()
      else this.#ask(this.#fields, false).end()
    } catch {
      this.#refuse(UNPASSABLE)
    }
  }

  /**
   * Ends the request: with an answer of the proxy, or, if that of the broker has begun, such that the client sees that
   * it is incomplete.
   */
  fail(fault: Fault, error?: unknown): void {
    if (this.#isOver) return
    this.#options.metrics.upstreamErrors.labels(fault).inc()
    this.#exchange.fault = { upstream: fault, code: (error as NodeJS.ErrnoException | undefined)?.code }
    this.#refuse(FAULTS[fault])
  }

  #refuse(error: HttpError): void {
    this.#giveUp()
    if (this.#outgoing.headersSent) cut(this.#outgoing)
    else answerText(this.#exchange, error, this.#options.draining())
  }

  /** Later events are ignored. */
  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#onOver()
  }

  #giveUp(): void {
    this.#end()
    this.#question?.destroy()
  }

  #ask(fields: readonly string[], isAlone: boolean): ClientRequest {
    const { path, search } = this.#exchange.target!
    const question = this.#options.upstream.ask({
      method: this.#incoming.method!,
      path: path + search,
      fields,
      isAlone,
    })
    this.#question = question
    this.#wait(this.#options.firstByteTimeoutMs)
    question.on('socket', (socket) => this.#onSocket(socket))
    question.on('response', (answer) => this.#onAnswer(answer))
    question.on('error', (error) => this.#onError(question, error))
    // A broker that switches protocols unasked gives neither answer nor error.
    question.on('close', () => {
      if (question === this.#question && !this.#answer) this.fail('nonsense')
    })
    return question
  }

  /** A POST is sent once, so it gets a new connection: the broker may close a kept one at any moment. */
  #askWithBody(): void {
    const incoming = this.#incoming
    const { 'content-length': length, 'transfer-encoding': coding } = incoming.headers
    const framing =
      coding === undefined ? ['content-length', String(Number(length ?? 0))] : ['transfer-encoding', 'chunked']
    const question = this.#ask([...this.#fields, ...framing], true)
    const maxBytes = maxBodyBytesOf(this.#exchange.target!.path)
    let sent = 0
    incoming.on('data', (chunk: Buffer) => {
      if (this.#isOver) return
      sent += chunk.length
      if (sent > maxBytes) {
        this.#refuse(tooLarge(maxBytes))
        return
      }
      this.#timer?.refresh()
      if (!question.write(chunk)) incoming.pause()
    })
    incoming.on('end', () => {
      if (!this.#isOver) question.end()
    })
    question.on('drain', () => incoming.resume())
    // The rest of the request is read and dropped, or the client would not see the answer.
    question.on('close', () => incoming.resume())
  }

  #onSocket(socket: Socket): void {
    this.#readBefore = socket.bytesRead
    if (!socket.connecting || this.#isOver) return
    this.#wait(this.#options.connectTimeoutMs)
    socket.once(this.#options.upstream.connected, () => this.#wait(this.#options.firstByteTimeoutMs))
  }

  #onError(question: ClientRequest, error: NodeJS.ErrnoException): void {
    if (this.#isOver || question !== this.#question) return
    if (this.#outgoing.headersSent) this.fail('cut', error)
    else if (error.code?.startsWith('HPE_')) this.fail('nonsense', error)
    else if (!this.#mayAskAgain(question)) this.fail('unreachable', error)
    else {
      this.#isAgain = true
      this.#options.metrics.retries.inc()
      this.#ask(this.#fields, true).end()
    }
  }

  /** Reads are safe to repeat, and the broker closes connections when it stops. */
  #mayAskAgain({ socket }: ClientRequest): boolean {
    return this.#incoming.method !== 'POST' && !this.#isAgain && (!socket || socket.bytesRead === this.#readBefore)
  }

  #onAnswer(answer: IncomingMessage): void {
    if (this.#isOver) return
    this.#answer = answer
    if (!this.#passHead(answer)) {
      this.fail('nonsense')
      return
    }
    this.#timer!.refresh()
    const length = lengthOf(answer)
    if (length >= MIN_BODY_BYTES) this.#freeWhatIsRead()
    answer.on('data', (chunk: Buffer) => {
      if (chunk.length === length && length <= MAX_STRING_BYTES) this.#passWhole(chunk)
      else this.#pass(chunk, answer)
    })
    answer.on('end', () => {
      if (answer.complete) this.#finish()
      else this.fail('cut')
    })
    answer.on('close', () => this.fail('cut'))
  }

  /** False for an invalid beginning of an answer. */
  #passHead(answer: IncomingMessage): boolean {
    const status = answer.statusCode!
    if (status < HTTP_OK || status > MAX_STATUS || !isFramed(answer, this.#incoming.method!)) return false
    const fields = answerFields(answer.rawHeaders, answer.headers.connection)
    fields.push('x-request-id', this.#exchange.requestId)
    if (this.#options.draining()) fields.push('connection', 'close')
    try {
      this.#outgoing.writeHead(status, fields)
      return true
    } catch {
      return false
    }
  }

  /**
   * Frees parsed bytes (the parser has copied them by then) and sent copies at once: V8 would collect them only tens of
   * MiB later. The listener must come after that of the parser, which is gone when the next one is added.
   */
  #freeWhatIsRead(): void {
    this.#isLarge = true
    const socket = this.#question!.socket!
    socket.on('data', freeBuffer)
    this.#question!.once('close', () => socket.off('data', freeBuffer))
  }

  #finish(rest?: string): void {
    if (this.#isOver) return
    this.#end()
    if (rest === undefined) this.#outgoing.end()
    else this.#outgoing.end(rest, 'latin1')
  }

  /** An answer that is complete at once leaves together with its head. */
  #passWhole(chunk: Buffer): void {
    this.#exchange.bytes = chunk.length
    this.#finish(chunk.toString('latin1'))
  }

  #pass(chunk: Buffer, answer: IncomingMessage): void {
    if (this.#isOver) return
    if (this.#exchange.bytes === 0) this.#wait(this.#options.idleTimeoutMs)
    else this.#timer!.refresh()
    this.#exchange.bytes += chunk.length
    if (this.#outgoing.write(chunk, this.#isLarge ? (error) => (error ? undefined : freeBuffer(chunk)) : undefined))
      return
    answer.pause()
    clearTimeout(this.#timer)
    this.#outgoing.once('drain', () => {
      if (this.#isOver) return
      this.#wait(this.#options.idleTimeoutMs)
      answer.resume()
    })
  }

  #wait(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#isOver) this.#timer = setTimeout(() => this.fail('timeout'), ms)
  }
}

/**
 * Whether the end of an answer differs from the end of its connection: a truncated list must not look complete. Errors
 * that Node answers before the broker sees a request have neither length nor body.
 */
function isFramed({ statusCode, headers }: IncomingMessage, method: string): boolean {
  const hasNoBody = method === 'HEAD' || statusCode === HTTP_NO_CONTENT || statusCode === HTTP_NOT_MODIFIED
  return hasNoBody || statusCode! >= HTTP_BAD_REQUEST || 'content-length' in headers || 'transfer-encoding' in headers
}

/** Length of the body; unlimited if unknown. */
function lengthOf({ headers }: IncomingMessage): number {
  const length = headers['content-length']
  return length === undefined ? Number.POSITIVE_INFINITY : Number(length)
}
