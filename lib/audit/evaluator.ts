import http from 'node:http'
import https from 'node:https'
import { type Reply, readReply } from '../net/reply.ts'

/** Most idle connections. */
const MAX_IDLE_CONNECTIONS = 8
/** Far above any real answer. */
const MAX_REPLY_BYTES = 1024 * 1024

/**
 * A client of the evaluator with keep-alive. Calls reject on transport errors, timeouts and answers that are too large.
 */
export class Evaluator {
  readonly #base: string
  readonly #timeoutMs: number
  readonly #agent: http.Agent
  readonly #request: typeof http.request

  /** `url` may end in a slash; `timeoutMs` bounds each call from its start to the last byte of the answer. */
  constructor(url: string, timeoutMs: number) {
    const transport = url.toLowerCase().startsWith('https:') ? https : http
    this.#base = url.replace(/\/+$/, '')
    this.#timeoutMs = timeoutMs
    this.#agent = new transport.Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS })
    this.#request = transport.request as typeof http.request
  }

  post(path: string, body: object): Promise<Reply> {
    return this.#call('POST', path, Buffer.from(JSON.stringify(body)))
  }

  get(path: string, query: Record<string, string>): Promise<Reply> {
    return this.#call('GET', `${path}?${new URLSearchParams(query)}`, null)
  }

  close(): void {
    this.#agent.destroy()
  }

  async #call(method: string, path: string, body: Buffer | null): Promise<Reply> {
    const headers = body === null ? {} : { 'content-type': 'application/json', 'content-length': body.length }
    const outgoing = this.#request(`${this.#base}${path}`, { method, agent: this.#agent, headers })
    const timer = setTimeout(
      () => outgoing.destroy(new Error(`no answer within ${this.#timeoutMs} ms`)),
      this.#timeoutMs,
    )
    const reply = readReply(outgoing, MAX_REPLY_BYTES)
    outgoing.end(body ?? undefined)
    return reply.finally(() => clearTimeout(timer))
  }
}
