/** The edge proxy in this process or in one of its own, with brokers and clients for it. All end with the test file. */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { ConsoleFiles } from '../../lib/console/files.ts'
import { listen } from '../../lib/http/server/listen.ts'
import type { ReaderLimits } from '../../lib/http/server/slow-readers.ts'
import { lineOptions } from '../../lib/observability/log.ts'
import { createEdge } from '../../wrangler-free-deploy/edge/app.ts'
import { loadConfig } from '../../wrangler-free-deploy/edge/config.ts'
import { refuseConnect } from '../../wrangler-free-deploy/edge/connect.ts'
import { createMetrics } from '../../wrangler-free-deploy/edge/metrics.ts'
import { openUpstream } from '../../wrangler-free-deploy/edge/upstream.ts'
import { program } from '../support/program.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const KEPT_STDERR_CHARS = 20_000

export const TOKEN = 'read-token-of-the-edge'

type Line = Record<string, unknown>

// Registered once for the file: a hook registered inside a test would run at the end of that test.
const endings: (() => unknown)[] = []
after(async () => {
  for (const end of endings.reverse()) await end()
})
const atEnd = (end: () => unknown) => void endings.push(end)

/** Starts the proxy in this process, on a free loopback port; `env` is added to `BROKER_URL` and a read token. */
export async function startEdge(
  brokerUrl: string,
  env: NodeJS.ProcessEnv = {},
  { readers = {}, maxKeptMs, consoleFiles = null }: EdgeOptions = {},
) {
  const logged: Line[] = []
  const log = pino(lineOptions, { write: (line: string) => void logged.push(JSON.parse(line)) })
  const metrics = createMetrics()
  const upstream = openUpstream(brokerUrl, maxKeptMs)
  let isDraining = false
  const config = loadConfig({ BROKER_URL: brokerUrl, BROKER_TOKEN_READ: TOKEN, ALLOWED_HOSTS: '*', ...env })
  const edge = createEdge({ config, log, metrics, upstream, draining: () => isDraining, consoleFiles })
  const { server, address } = await listen(edge.fetch, [{ host: '127.0.0.1', port: 0 }], {
    before: edge.before,
    readers,
  })
  server.on('connect', refuseConnect)
  atEnd(async () => {
    upstream.end()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    port: address.port,
    url: `http://127.0.0.1:${address.port}`,
    /** The log lines of requests. */
    lines: () => logged.filter(({ msg }) => msg === 'request'),
    drain: () => {
      isDraining = true
    },
    /** Value of a metric by its name and labels, or 0. */
    async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
      const { values } = (await metrics.registry.getSingleMetric(name)!.get()) as {
        values: { value: number; labels: Record<string, string> }[]
      }
      return values.find((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value))?.value ?? 0
    },
    async isQuiet(): Promise<void> {
      await until('nothing is under way', async () => (await this.metric('edge_http_requests_in_flight')) === 0)
    },
  }
}

interface EdgeOptions {
  readers?: Partial<ReaderLimits>
  maxKeptMs?: number
  consoleFiles?: ConsoleFiles | null
}

export type Edge = Awaited<ReturnType<typeof startEdge>>

export interface EdgeProcess {
  readonly url: string
  readonly admin: string
  readonly port: number
  readonly pid: number
  /** All log lines. */
  readonly log: readonly Line[]
  readonly output: string
  readonly hasExited: boolean
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  kill(signal?: NodeJS.Signals): void
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
atEnd(() => {
  for (const child of running) child.kill('SIGKILL')
})

interface ProcessOptions {
  nodeArgs?: string[]
  /** Drops the log lines of requests. */
  isForgetful?: boolean
}

class Launched implements EdgeProcess {
  readonly child: ChildProcess
  readonly exited: EdgeProcess['exited']
  readonly log: Line[] = []
  output = ''
  hasExited = false
  url = ''
  admin = ''

  constructor(env: NodeJS.ProcessEnv, { nodeArgs = [], isForgetful = false }: ProcessOptions) {
    this.child = spawn(process.execPath, [...nodeArgs, ...program('wrangler-free-deploy/edge/server.ts')], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        NODE_ENV: 'development',
        LISTEN_ADDR: '127.0.0.1:0',
        ADMIN_ADDR: '127.0.0.1:0',
        LOG_LEVEL: 'info',
        ALLOWED_HOSTS: '*',
        ...env,
      },
    })
    running.add(this.child)
    this.exited = once(this.child, 'close').then(([code, signal]) => {
      running.delete(this.child)
      this.hasExited = true
      return { code, signal }
    })
    createInterface({ input: this.child.stdout! }).on('line', (text) => {
      if (!isForgetful || !text.includes('"msg":"request"')) this.#read(text)
    })
    this.child.stderr!.on('data', (bytes) => {
      this.output = (this.output + bytes).slice(-KEPT_STDERR_CHARS)
    })
  }

  #read(text: string): void {
    const line = JSON.parse(text) as Line
    this.log.push(line)
    if (line.msg !== 'listening') return
    this.url = line.edge as string
    this.admin = line.admin as string
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  get pid(): number {
    return this.child.pid!
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    if (!this.hasExited) this.child.kill(signal)
  }
}

/** Starts the proxy as a process, without waiting until it listens. */
export const launchEdge = (env: NodeJS.ProcessEnv, options: ProcessOptions = {}): EdgeProcess =>
  new Launched(env, options)

/** Starts the proxy as a process and waits until it listens. */
export async function spawnEdge(env: NodeJS.ProcessEnv, options: ProcessOptions = {}): Promise<EdgeProcess> {
  const edge = launchEdge(env, options)
  await until('the edge listens', () => edge.url !== '' || edge.hasExited)
  assert.equal(edge.hasExited, false, edge.output)
  return edge
}

export interface Heard {
  method: string
  /** The request target. */
  target: string
  headers: http.IncomingHttpHeaders
  rawHeaders: string[]
  /** One character for each byte. */
  body: string
  /** Number of the connection, starting with 1. */
  connection: number
}

type Handler = (incoming: http.IncomingMessage, outgoing: http.ServerResponse) => void

/** A broker that answers with the handler and records the requests. */
export async function startUpstream(handler: Handler = (_, outgoing) => void outgoing.end('heard')) {
  const heard: Heard[] = []
  const numbers = new Map<net.Socket, number>()
  const server = http.createServer((incoming, outgoing) => {
    const { method, url, headers, rawHeaders } = incoming
    const one: Heard = {
      method: method!,
      target: url!,
      headers,
      rawHeaders,
      body: '',
      connection: numbers.get(incoming.socket)!,
    }
    heard.push(one)
    incoming.on('data', (bytes: Buffer) => {
      one.body += bytes.toString('latin1')
    })
    handler(incoming, outgoing)
  })
  let connections = 0
  server.on('connection', (socket: net.Socket) => numbers.set(socket, ++connections))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  atEnd(close)
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    heard,
    server,
    close,
    get connections() {
      return connections
    },
  }
}

/** A broker on raw sockets: `onQuestion` gets each head of a request and the count of the heads before it. */
export async function startRawUpstream(onQuestion: (socket: net.Socket, head: string, number: number) => void) {
  let number = 0
  const open = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    open.add(socket)
    let text = ''
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
    socket.setEncoding('latin1').on('data', (piece) => {
      text += piece
      for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
        const head = text.slice(0, end)
        text = text.slice(end + 4)
        onQuestion(socket, head, number++)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    open,
    get questions() {
      return number
    },
  }
}

/** A raw connection: the test writes every byte. */
export class Wire {
  readonly socket: net.Socket
  received = ''
  /** The other side has ended the connection. */
  hasEnded = false
  /** The code of the error that ended the connection. */
  error: string | undefined
  isClosed = false

  constructor(port: number) {
    this.socket = net.connect({ host: '127.0.0.1', port, noDelay: true })
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text) => {
      this.received += text
    })
    this.socket.on('end', () => {
      this.hasEnded = true
    })
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      this.error = error.code
    })
    this.socket.on('close', () => {
      this.isClosed = true
    })
    atEnd(() => this.socket.destroy())
  }

  async sees(pattern: RegExp): Promise<RegExpExecArray> {
    return until(`the proxy sends ${pattern}`, () => pattern.exec(this.received))
  }
}

/** Sends the text unchanged and reads until the other side ends the connection. */
export async function exchange(port: number, text: string): Promise<{ status: number; head: string; body: string }> {
  const wire = new Wire(port)
  wire.socket.write(text, 'latin1')
  await until('the connection ends', () => wire.isClosed)
  const [, status] =
    /^HTTP\/1\.1 (\d{3}) /.exec(wire.received) ?? assert.fail(`${JSON.stringify(text)}: ${wire.received}`)
  const end = wire.received.indexOf('\r\n\r\n')
  return { status: Number(status), head: wire.received.slice(0, end), body: wire.received.slice(end + 4) }
}

/** One request on a connection of its own, with target and header fields unchanged. */
export const ask = (port: number, line: string, ...fields: string[]) =>
  exchange(port, [`${line} HTTP/1.1`, 'Host: edge', 'Connection: close', ...fields, '', ''].join('\r\n'))
