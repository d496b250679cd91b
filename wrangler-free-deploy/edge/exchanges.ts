/** The requests in progress: their logs and metrics, and notification of those whose client has disconnected. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { requestId } from '../../lib/http/request/request-id.ts'
import type { Metrics } from './metrics.ts'
import type { Target } from './target.ts'

const MS_PER_SECOND = 1_000
const US_PER_MS = 1_000

/** Labels never come from the client. */
const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])
const CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx']

/** One request and its answer. */
export interface Exchange {
  readonly incoming: IncomingMessage
  readonly outgoing: ServerResponse
  readonly requestId: string
  readonly startedAt: number
  /** Set once the request was accepted. */
  target: Target | null
  /** Body bytes of the answer that were written so far. */
  bytes: number
  /** The failure of the broker: the kind that is counted, and the error code. */
  fault: { readonly upstream: string; readonly code?: string | undefined } | null
  /** Called once if the client disconnects before the answer is complete. */
  onAnswerEnd: () => void
  isOver: boolean
}

export class Exchanges {
  readonly #metrics: Metrics
  readonly #log: Logger
  readonly #byAnswer = new WeakMap<ServerResponse, Exchange>()
  /** Several if a client pipelines requests; only the first then gets close events of its own answer. */
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
