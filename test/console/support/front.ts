/**
 * The built console in front of a broker, or of answers that a test makes up: for refusals that a real broker rarely
 * gives, and for lists longer than a seed.
 */
import { createReadStream, existsSync } from 'node:fs'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, normalize } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const FILES = fileURLToPath(new URL('../../../dist/console', import.meta.url))
const BASE = '/console/'
/** The content security policy of the console. */
const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["worker-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
  "require-trusted-types-for 'script'",
].join('; ')
const TYPES: Readonly<Record<string, string>> = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' }

/** Answers a request; returns false if it left that to the broker. */
export type Answer = (url: URL, request: IncomingMessage, response: ServerResponse) => boolean

export interface Front {
  /** URL of the console, with a slash at the end. */
  readonly url: string
  /** Called before the broker is asked. A test may replace it at any time. */
  answer: Answer
  /** All requests, forwarded or answered, in order. */
  readonly asked: readonly URL[]
}

const open = new Set<http.Server>()
// Registered here, since a hook inside another one would close the servers with that one.
after(() => {
  for (const server of open) {
    server.close()
    server.closeAllConnections()
  }
})

/** Ends with the test file. Without `broker`, requests that `answer` leaves get 404. */
export async function startFront(broker: string | null, answer: Answer = () => false): Promise<Front> {
  const asked: URL[] = []
  const server = http.createServer((request, response) => {
    const url = new URL(request.url!, front.url)
    if (url.pathname.startsWith(BASE)) return sendFile(url.pathname.slice(BASE.length), response)
    asked.push(url)
    if (front.answer(url, request, response)) return
    if (broker === null) return void response.writeHead(404).end()
    forward(`${broker}${request.url}`, request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const front: Front = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${BASE}`, answer, asked }
  open.add(server)
  return front
}

function sendFile(path: string, response: ServerResponse): void {
  const file = join(FILES, normalize(`/${path}`))
  const isAsset = path.includes('.') && existsSync(file)
  response.writeHead(200, {
    'content-type': isAsset ? (TYPES[path.split('.').at(-1)!] ?? 'application/octet-stream') : 'text/html',
    'content-security-policy': POLICY,
  })
  createReadStream(isAsset ? file : join(FILES, 'index.html')).pipe(response)
}

function forward(url: string, request: IncomingMessage, response: ServerResponse): void {
  const { host: _, ...headers } = request.headers
  const forwarded = http.request(url, { method: request.method!, headers }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers)
    answer.pipe(response)
    answer.on('error', () => response.destroy())
  })
  forwarded.on('error', () => response.destroy())
  response.on('close', () => forwarded.destroy())
  request.pipe(forwarded)
}
