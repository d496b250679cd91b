/** Requests of agents and readers. Each answer is checked against the rules for all answers. */
import http from 'node:http'
import type { Broker } from './broker.ts'
import type { Recorder } from './record.ts'

/** The request timeout of agents. */
const TIMEOUT_MS = 30_000

export interface Reply {
  /** 0: the connection ended, or the time was over, before the whole answer arrived. */
  status: number
  text: string
  requestId: string
  retryAfterMs: number
  broker: string
  startedAt: number
}

export class Client {
  readonly record: Recorder
  readonly brokers: readonly Broker[]
  readonly #agent = new http.Agent({ keepAlive: true, maxFreeSockets: 32 })

  constructor(brokers: readonly Broker[], record: Recorder) {
    this.brokers = brokers
    this.record = record
  }

  any(): Broker {
    return this.brokers[Math.floor(Math.random() * this.brokers.length)]!
  }

  /** Never rejects. `own`: the request is valid, so that 4xx is a violation. */
  async send(
    method: string,
    path: string,
    body: string | null,
    options: { broker?: Broker; own?: boolean; timeoutMs?: number } = {},
  ): Promise<Reply> {
    const { broker = this.any(), own = true, timeoutMs = TIMEOUT_MS } = options
    const startedAt = Date.now()
    const reply = await this.#exchange(broker, method, path, body, timeoutMs, startedAt)
    this.judge(reply, method, path, own)
    return reply
  }

  /** The only 5xx is 503 with Retry-After; a valid request gets no 4xx except 404 and 408. */
  judge(
    { status, text, requestId, retryAfterMs, broker, startedAt }: Reply,
    method: string,
    path: string,
    own: boolean,
  ): void {
    const { record } = this
    record.count(status === 0 ? `lost (${text})` : String(status))
    const what = () =>
      `${broker}: ${method} ${path} ${status || 'lost'} after ${Date.now() - startedAt} ms, request ${requestId || '-'}: ${text.slice(0, 200)}`
    if (status >= 500 && status !== 503) record.violation('no 5xx but 503', what(), startedAt)
    // 503 of a health check needs no Retry-After.
    if (status === 503 && retryAfterMs === 0 && path !== '/health')
      record.violation('503 has Retry-After', what(), startedAt)
    // A process that was stopped during a request may answer 408, as for a slow body.
    if (own && status >= 400 && status < 500 && status !== 404 && status !== 408)
      record.violation('no 4xx for what is right', what(), startedAt)
    if (record.quiet && own && status !== 200 && status !== 404)
      record.violation('all is well after the storm', what(), startedAt)
  }

  #exchange(
    broker: Broker,
    method: string,
    path: string,
    body: string | null,
    timeoutMs: number,
    startedAt: number,
  ): Promise<Reply> {
    return new Promise((resolve) => {
      let requestId = ''
      const lost = (why: string) => finish(0, why, 0)
      const finish = (status: number, text: string, retryAfterMs: number) => {
        clearTimeout(limit)
        resolve({ status, text, requestId, retryAfterMs, broker: broker.name, startedAt })
      }
      const headers: http.OutgoingHttpHeaders =
        body === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
      const outgoing = http.request({ host: '127.0.0.1', port: broker.port, method, path, headers, agent: this.#agent })
      const limit = setTimeout(() => {
        lost(
          broker.process.ranThrough(startedAt, Date.now())
            ? 'no answer in time from a broker that ran'
            : 'no answer in time',
        )
        outgoing.destroy()
      }, timeoutMs)
      outgoing.on('error', (error) => lost((error as NodeJS.ErrnoException).code ?? error.message))
      outgoing.on('response', (incoming) => {
        requestId = String(incoming.headers['x-request-id'] ?? '')
        const chunks: Buffer[] = []
        incoming.on('data', (chunk) => chunks.push(chunk))
        incoming.on('error', () => lost('cut'))
        incoming.on('close', () => incoming.complete || lost('cut'))
        incoming.on('end', () =>
          finish(
            incoming.statusCode!,
            Buffer.concat(chunks).toString(),
            Number(incoming.headers['retry-after'] ?? 0) * 1_000,
          ),
        )
      })
      outgoing.end(body ?? undefined)
    })
  }

  end(): void {
    this.#agent.destroy()
  }
}
