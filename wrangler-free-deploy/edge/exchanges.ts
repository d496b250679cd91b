/** The requests under way: what is told of each in the log and in the metrics, and how each hears that its client has left. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { requestId } from '../../lib/http/request/request-id.ts'
import type { Metrics } from './metrics.ts'
import type { Target } from './target.ts'

const MS_PER_SECOND = 1_000
const US_PER_MS = 1_000

/** A label is never the client's to choose. */
const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])
const CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx']

/** One request and its answer. */
export interface Exchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly requestId: string
  readonly startedAt: number
  /** What is asked of the broker; set once the request has been judged. */
  target: Target | null
  /** Of the body of the answer, handed over so far. */
  bytes: number
  /** What went wrong with the broker: the kind that is counted, and the code of the error behind it. */
  fault: { readonly upstream: string; readonly code?: string | undefined } | null
  /** Called once when the connection of the client has ended before the answer has. */
  onAnswerEnd: () => void
  isOver: boolean
}

export class Exchanges {
  readonly #metrics: Metrics
  readonly #log: Logger
  readonly #byAnswer = new WeakMap<ServerResponse, Exchange>()
  /** Several at once where a client sends requests in one breath: only the first then hears from its own answer. */
  readonly #bySocket = new WeakMap<Socket, Set<Exchange>>()

  constructor({ metrics, log }: { metrics: Metrics; log: Logger }) {
    this.#metrics = metrics
    this.#log = log
  }

  begin(incoming: IncomingMessage, outgoing: ServerResponse): Exchange {
    const sent = incoming.headers['x-request-id']
    const exchange: Exchange = {
      incoming,
      outgoing,
      requestId: requestId(typeof sent === 'string' ? sent : undefined),
      startedAt: performance.now(),
      target: null,
      bytes: 0,
      fault: null,
      onAnswerEnd: () => {},
      isOver: false,
    }
    this.#byAnswer.set(outgoing, exchange)
    const open = this.#openOn(incoming.socket)
    open.add(exchange)
    this.#metrics.inFlight.inc()
    outgoing.once('close', () => {
      open.delete(exchange)
      this.#end(exchange)
    })
    return exchange
  }

  of(outgoing: ServerResponse): Exchange {
    return this.#byAnswer.get(outgoing)!
  }

  #openOn(socket: Socket): Set<Exchange> {
    const known = this.#bySocket.get(socket)
    if (known) return known
    const open = new Set<Exchange>()
    this.#bySocket.set(socket, open)
    socket.once('close', () => {
      for (const exchange of open) this.#end(exchange)
    })
    return open
  }

  #end(exchange: Exchange): void {
    if (exchange.isOver) return
    exchange.isOver = true
    const { incoming, outgoing, requestId, startedAt, bytes } = exchange
    const isWhole = outgoing.writableFinished
    if (!isWhole) exchange.onAnswerEnd()
    const ms = performance.now() - startedAt
    const status = outgoing.headersSent ? outgoing.statusCode : null
    const method = KNOWN_METHODS.has(incoming.method!) ? incoming.method! : 'other'
    const { inFlight, requests, duration } = this.#metrics
    inFlight.dec()
    requests.labels(method, CLASSES[Math.floor((status ?? 0) / 100)]!).inc()
    duration.labels(method).observe(ms / MS_PER_SECOND)
    const line = {
      requestId,
      method,
      status,
      ms: Math.round(ms * US_PER_MS) / US_PER_MS,
      bytes,
      ...(isWhole ? {} : { isWhole }),
    }
    this.#log.info(exchange.fault ? { ...line, ...exchange.fault } : line, 'request')
  }
}
