import http from 'node:http'
import https from 'node:https'

/** Idle connections that are kept (interop-core 5.3). */
const MAX_IDLE_CONNECTIONS = 8
/** Far above any real answer. */
const MAX_REPLY_BYTES = 1024 * 1024

export interface Reply {
  readonly status: number
  readonly text: string
}

/** The evaluator, over kept connections. Calls reject on transport errors, on silence, and on answers that are too large. */
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

  #call(method: string, path: string, body: Buffer | null): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const headers = body === null ? {} : { 'content-type': 'application/json', 'content-length': body.length }
      const outgoing = this.#request(`${this.#base}${path}`, { method, agent: this.#agent, headers })
      const timer = setTimeout(() => outgoing.destroy(new Error(`no answer within ${this.#timeoutMs} ms`)), this.#timeoutMs)
      const fail = (error: Error) => {
        clearTimeout(timer)
        reject(error)
      }
      outgoing.on('error', fail)
      outgoing.on('response', (incoming) => {
        const chunks: Buffer[] = []
        let bytes = 0
        incoming.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > MAX_REPLY_BYTES) outgoing.destroy(new Error(`an answer of more than ${MAX_REPLY_BYTES} bytes`))
          else chunks.push(chunk)
        })
        incoming.on('error', fail)
        incoming.on('end', () => {
          clearTimeout(timer)
          resolve({ status: incoming.statusCode!, text: Buffer.concat(chunks).toString() })
        })
        // Cut short: neither `end` nor, on every version of Node, `error` comes.
        incoming.on('close', () => fail(new Error('the answer was cut short')))
      })
      outgoing.end(body ?? undefined)
    })
  }
}
