/** Sends generated requests to a proxy on raw sockets, and checks all answers and all requests that the broker gets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { Generator, SECRET, type Shot } from './generator.ts'

/** Valid requests sent at once on each connection, before one that may end it. */
const CLEAN_SHOTS = 15
const CONNECTIONS = 8
const KEPT_FAULTS = 10
const HOP_BY_HOP = [
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'proxy-connection',
  'proxy-authorization',
  'cookie',
  'expect',
  'x-hop',
]

export interface Report {
  /** Requests sent. */
  shots: number
  /** Requests that the broker got. */
  heard: number
  /** Answers by status, and connections that ended without one. */
  answers: Record<string, number>
  /** The first few faults. */
  faults: string[]
}

/** A broker that checks its requests. `expected` has the requests under way, by mark. */
async function startRecorder(token: string, faults: string[]) {
  const expected = new Map<string, Shot>()
  const arrived = new Set<string>()
  let heard = 0
  const fault = (text: string) => {
    if (faults.length < KEPT_FAULTS) faults.push(text)
  }
  const server = http.createServer({ keepAliveTimeout: 75_000 }, (incoming, outgoing) => {
    heard++
    const { method, url, headers, rawHeaders } = incoming
    const what = `${method} ${url}`
    const { port } = server.address() as AddressInfo
    judgeLine(method!, url!, (rule) => fault(`${rule}: ${what}`))
    const credentials = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]!.toLowerCase() === 'authorization')
    if (credentials.length !== 1 || credentials[0] !== `Bearer ${token}`) fault(`credentials ${credentials}: ${what}`)
    if (rawHeaders.some((text) => text.includes(SECRET))) fault(`a secret in ${rawHeaders.join('|')}: ${what}`)
    for (const name of HOP_BY_HOP) if (name in headers) fault(`field ${name}: ${what}`)
    if (headers.host !== `127.0.0.1:${port}`) fault(`host ${headers.host}: ${what}`)
    if (!/^[\w-]{8,64}$/.test(String(headers['x-request-id']))) fault(`id ${headers['x-request-id']}: ${what}`)
    if (method !== 'POST' && ('content-length' in headers || 'transfer-encoding' in headers)) fault(`a body: ${what}`)
    const mark = /n\d+x$/.exec(url!)?.[0]
    const shot = mark === undefined ? undefined : expected.get(mark)
    if (shot && shot.heard !== what) fault(`${what} where ${shot.heard} was expected`)
    if (mark !== undefined) arrived.add(mark)
    let body = ''
    incoming.setEncoding('latin1').on('data', (piece) => {
      body += piece
    })
    incoming.on('end', () => {
      if (shot && body !== shot.body) fault(`body ${JSON.stringify(body)}: ${what}`)
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': '2' }).end('[]')
    })
  })
  server.on('clientError', (error: Error, socket) => {
    if (
      (error as NodeJS.ErrnoException).code?.startsWith('HPE_') &&
      !/EOF/.test(String((error as NodeJS.ErrnoException).code))
    )
      fault(`the broker could not read what it was sent: ${(error as NodeJS.ErrnoException).code}`)
    socket.destroy()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    expected,
    arrived,
    fault,
    get heard() {
      return heard
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Rules for every request that the broker gets. */
function judgeLine(method: string, url: string, fault: (rule: string) => void): void {
  const [path = '', ...rest] = url.split('?')
  if (!['GET', 'HEAD', 'POST'].includes(method)) fault('method')
  if (method === 'POST' && !/^\/seccomp\/profiles\/[^/]+\/[^/]+\/[^/]+\/export$/.test(path)) fault('POST')
  if (
    path[0] !== '/' ||
    path.includes('%') ||
    path.includes('..') ||
    path
      .slice(1)
      .split('/')
      .some((one) => one === '' || one === '.')
  )
    fault('path')
  for (const character of path + rest.join(''))
    if (character <= ' ' || character > '~' || '\\#'.includes(character)) fault('character')
}

type Recorder = Awaited<ReturnType<typeof startRecorder>>

/** Reads answers one after the other; the answer to a HEAD has no body. */
class Answers {
  readonly #shots: readonly Shot[]
  readonly #onAnswer: (shot: Shot | undefined, status: number) => void
  #text = ''
  #next = 0

  constructor(shots: readonly Shot[], onAnswer: (shot: Shot | undefined, status: number) => void) {
    this.#shots = shots
    this.#onAnswer = onAnswer
  }

  get count(): number {
    return this.#next
  }

  read(piece: string): void {
    this.#text += piece
    for (let end = this.#text.indexOf('\r\n\r\n'); end >= 0; end = this.#text.indexOf('\r\n\r\n')) {
      const head = this.#text.slice(0, end)
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1])
      if (status === 100) {
        this.#text = this.#text.slice(end + 4)
        continue
      }
      const shot = this.#shots[this.#next]
      const length = shot?.method === 'HEAD' ? 0 : bodyLength(head)
      if (this.#text.length < end + 4 + length) return
      this.#text = this.#text.slice(end + 4 + length)
      this.#next++
      this.#onAnswer(shot, status)
    }
  }
}

/** Length of a body; chunked bodies are empty here. */
function bodyLength(head: string): number {
  if (/\r\ntransfer-encoding: chunked/i.test(head)) return '0\r\n\r\n'.length
  return Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
}

/** One connection: valid requests, their answers, then the last request and the end of the connection. */
function volley(
  port: number,
  generator: Generator,
  recorder: Recorder,
  answers: Record<string, number>,
): Promise<void> {
  const clean = Array.from({ length: CLEAN_SHOTS }, () => generator.clean())
  const dirty = generator.dirty()
  for (const shot of clean) recorder.expected.set(shot.mark, shot)
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port, noDelay: true })
    const reader = new Answers(clean, (shot, status) => {
      answers[status] = (answers[status] ?? 0) + 1
      if (shot && shot.status !== status)
        recorder.fault(
          `${status} where ${shot.status} was expected: ${JSON.stringify(shot.bytes.toString('latin1')).slice(0, 600)}`,
        )
      if (reader.count !== CLEAN_SHOTS) return
      socket.write(dirty.bytes)
      socket.end()
    })
    socket.setEncoding('latin1')
    socket.on('data', (piece: string) => reader.read(piece))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') reject(error)
    })
    socket.on('close', () => {
      if (reader.count < CLEAN_SHOTS)
        recorder.fault(
          `the connection ended before ${JSON.stringify(clean[reader.count]!.bytes.toString('latin1')).slice(0, 600)}`,
        )
      else if (reader.count === CLEAN_SHOTS) answers.none = (answers.none ?? 0) + 1
      for (const shot of clean) {
        const { mark } = shot
        recorder.expected.delete(mark)
        if (shot.heard !== null && !recorder.arrived.has(mark)) recorder.fault(`not heard: ${shot.heard}`)
        recorder.arrived.delete(mark)
      }
      resolve()
    })
    socket.write(Buffer.concat(clean.map(({ bytes }) => bytes)))
  })
}

/** Sends at least `shots` requests from one seed, on several connections at once. */
export async function shoot(options: {
  start: (brokerUrl: string) => Promise<{ port: number; alive: () => boolean }>
  token: string
  shots: number
  seed: number
  onProgress?: (shots: number) => void
}): Promise<Report> {
  const { token, shots, seed, onProgress } = options
  const faults: string[] = []
  const answers: Record<string, number> = {}
  const recorder = await startRecorder(token, faults)
  const { port, alive } = await options.start(recorder.url)
  const generator = new Generator(seed)
  let sent = 0
  const gun = async () => {
    while (sent < shots && faults.length < KEPT_FAULTS && alive()) {
      sent += CLEAN_SHOTS + 1
      await volley(port, generator, recorder, answers)
      onProgress?.(sent)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, gun))
  const { heard } = recorder
  await recorder.close()
  assert.ok(alive(), 'the proxy ended')
  return { shots: sent, heard, answers, faults }
}
