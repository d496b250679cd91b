/** Sends generated requests to a proxy on raw sockets, and checks all answers and all requests that the broker gets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import type { ConsoleFiles } from '../../lib/console/files.ts'
import { Generator, SECRET, type Shot, TRY } from './generator.ts'

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

/** The bodies of each file of the console, one character for each byte: plain and packed. */
type Bodies = ReadonlyMap<string, readonly string[]>
const FORWARDED = '[]'
/** A clean request whose answer is not known may be one of these. */
const POSSIBLE = [200, 308, 400, 404, 405]

/** A broker that checks its requests. `expected` has the requests under way, by mark. */
async function startRecorder(token: string, faults: string[], hasConsole: boolean) {
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
    judgeLine(method!, url!, hasConsole, (rule) => fault(`${rule}: ${what}`))
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
      outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': '2' }).end(FORWARDED)
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
function judgeLine(method: string, url: string, hasConsole: boolean, fault: (rule: string) => void): void {
  const [path = '', ...rest] = url.split('?')
  if (!['GET', 'HEAD', 'POST'].includes(method)) fault('method')
  const isTry = hasConsole && path === TRY
  if (method === 'POST' && !isTry && !/^\/seccomp\/profiles\/[^/]+\/[^/]+\/[^/]+\/export$/.test(path)) fault('POST')
  if (hasConsole && /^\/console(\/|$)/.test(path)) fault('a path of the console')
  if (
    path[0] !== '/' ||
    path.includes('%') ||
    path.includes('..') ||
    (path !== '/' &&
      path
        .slice(1)
        .split('/')
        .some((one) => one === '' || one === '.'))
  )
    fault('path')
  for (const character of path + rest.join(''))
    if (character <= ' ' || character > '~' || '\\#'.includes(character)) fault('character')
}

type Recorder = Awaited<ReturnType<typeof startRecorder>>

type OnAnswer = (shot: Shot | undefined, status: number, body: string) => void

/** Reads answers one after the other; the answer to a HEAD has no body. */
class Answers {
  readonly #shots: readonly Shot[]
  readonly #onAnswer: OnAnswer
  #text = ''
  #next = 0

  constructor(shots: readonly Shot[], onAnswer: OnAnswer) {
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
      const body = this.#text.slice(end + 4, end + 4 + length)
      this.#text = this.#text.slice(end + 4 + length)
      this.#next++
      this.#onAnswer(shot, status, body)
    }
  }
}

/** Length of a body; chunked bodies are empty here. */
function bodyLength(head: string): number {
  if (/\r\ntransfer-encoding: chunked/i.test(head)) return '0\r\n\r\n'.length
  return Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
}

/**
 * Whether a 200 has the body of the broker or of a console file (the right one, if that is known), and an empty
 * answer is empty. Other answers are the texts of refusals.
 */
function isExpectedBody(shot: Shot | undefined, status: number, body: string, bodies: Bodies): boolean {
  if (status === 308 || status === 404) return body === ''
  if (status !== 200 || shot?.method === 'HEAD') return true
  if (shot?.file) return bodies.get(shot.file)!.includes(body)
  if (shot?.heard) return body === FORWARDED
  // The last request of a connection may be anything, and HEAD has no body.
  if (!shot && (body === '' || body === FORWARDED)) return true
  return [...bodies.values()].some((one) => one.includes(body))
}

/** One connection: valid requests, their answers, then the last request and the end of the connection. */
function volley(
  port: number,
  generator: Generator,
  recorder: Recorder,
  answers: Record<string, number>,
  bodies: Bodies,
): Promise<void> {
  const clean = Array.from({ length: CLEAN_SHOTS }, () => generator.clean())
  const dirty = generator.dirty()
  for (const shot of clean) recorder.expected.set(shot.mark, shot)
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port, noDelay: true })
    const reader = new Answers(clean, (shot, status, body) => {
      answers[status] = (answers[status] ?? 0) + 1
      const asked = () => JSON.stringify((shot ?? dirty).bytes.toString('latin1')).slice(0, 600)
      if (shot && !(shot.status === null ? POSSIBLE.includes(status) : shot.status === status))
        recorder.fault(`${status} where ${shot.status} was expected: ${asked()}`)
      if (!isExpectedBody(shot, status, body, bodies))
        recorder.fault(`the body ${JSON.stringify(body).slice(0, 200)} with ${status}: ${asked()}`)
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
  /** The files of the console, if the proxy serves it. */
  consoleFiles?: ConsoleFiles
}): Promise<Report> {
  const { token, shots, seed, onProgress, consoleFiles } = options
  const hasConsole = consoleFiles !== undefined
  const faults: string[] = []
  const answers: Record<string, number> = {}
  const recorder = await startRecorder(token, faults, hasConsole)
  const { port, alive } = await options.start(recorder.url)
  const generator = new Generator(seed, hasConsole)
  const bodies: Bodies = new Map(
    [...(consoleFiles ?? [])].map(([name, { plain, packed }]) => [
      name,
      [plain, packed ?? plain].map((bytes) => bytes.toString('latin1')),
    ]),
  )
  let sent = 0
  const gun = async () => {
    while (sent < shots && faults.length < KEPT_FAULTS && alive()) {
      sent += CLEAN_SHOTS + 1
      await volley(port, generator, recorder, answers, bodies)
      onProgress?.(sent)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, gun))
  const { heard } = recorder
  await recorder.close()
  assert.ok(alive(), 'the proxy ended')
  return { shots: sent, heard, answers, faults }
}
