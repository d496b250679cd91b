/**
 * A load generator that costs little: keep-alive sockets, one request under way on each, requests rendered to bytes before the
 * clock starts, answers read only as far as their length.
 */
import { connect, type Socket } from 'node:net'

/** As good as 200 to who has the answer already. */
const NOT_MODIFIED = 304

export interface Load {
  port: number
  connections: number
  /** Longest time of the phase, in milliseconds. */
  forMs: number
  /** Request number `i` as bytes; null ends the phase. */
  request: (i: number) => Buffer | null
  /** The requests are HEAD: no body follows, whatever length is told. */
  isHead?: boolean
}

export interface Measured {
  calls: number
  failed: number
  seconds: number
  p50Ms: number
  p95Ms: number
  p99Ms: number
  maxMs: number
  /** How many calls took longer. */
  slowerThan: (ms: number) => number
}

export function get(path: string): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nhost: broker\r\n\r\n`)
}

export function post(path: string, body: string): Buffer {
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: broker\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

/** Sends until the time or the requests are over. */
export async function run({ port, connections, forMs, request, isHead = false }: Load): Promise<Measured> {
  const latencies: number[] = []
  let failed = 0
  let next = 0
  const startedAt = performance.now()
  const worker = async () => {
    const socket = await open(port)
    const answers = reader(socket, isHead)
    for (;;) {
      if (performance.now() - startedAt > forMs) break
      const bytes = request(next++)
      if (bytes === null) break
      const sentAt = performance.now()
      socket.write(bytes)
      const status = await answers()
      latencies.push(performance.now() - sentAt)
      if (status !== 200 && status !== NOT_MODIFIED) failed++
    }
    socket.destroy()
  }
  await Promise.all(Array.from({ length: connections }, worker))
  return summary(latencies, failed, startedAt)
}

function summary(latencies: number[], failed: number, startedAt: number): Measured {
  const seconds = (performance.now() - startedAt) / 1_000
  latencies.sort((a, b) => a - b)
  const slowerThan = (ms: number) => latencies.filter((one) => one > ms).length
  const at = (q: number) => latencies[Math.floor(q * (latencies.length - 1))] ?? 0
  return {
    calls: latencies.length,
    failed,
    seconds,
    p50Ms: at(0.5),
    p95Ms: at(0.95),
    p99Ms: at(0.99),
    maxMs: at(1),
    slowerThan,
  }
}

export interface Steady extends Omit<Load, 'request' | 'port'> {
  /** Connections go to these in turn. */
  ports: readonly number[]
  ratePerSecond: number
  request: (i: number) => Buffer
}

/**
 * Sends request after request when it is due, on whichever connection is free. Times count from when a request was due, so that
 * a server that stalls is not spared the requests that it kept from leaving.
 */
export async function openLoop({ ports, connections, forMs, ratePerSecond, request }: Steady): Promise<Measured> {
  const latencies: number[] = []
  let failed = 0
  let next = 0
  const total = Math.round((forMs / 1_000) * ratePerSecond)
  const startedAt = performance.now()
  const worker = async (_: unknown, n: number) => {
    const port = ports[n % ports.length]!
    let socket = await open(port)
    let answers = reader(socket)
    for (;;) {
      const i = next++
      if (i >= total) break
      const dueAt = startedAt + (i * 1_000) / ratePerSecond
      const early = dueAt - performance.now()
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, early))
      // A timer may be late by a millisecond, which is not the server's doing.
      const sentAt = early > 0 ? performance.now() : dueAt
      // The server closes connections that are idle for long.
      if (socket.destroyed) {
        socket = await open(port)
        answers = reader(socket)
      }
      socket.write(request(i))
      const status = await answers()
      latencies.push(performance.now() - sentAt)
      if (status !== 200 && status !== NOT_MODIFIED) failed++
    }
    socket.destroy()
  }
  await Promise.all(Array.from({ length: connections }, worker))
  return summary(latencies, failed, startedAt)
}

/** The text of the answer to a GET, head and body. */
export function read(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ port, host: '127.0.0.1' }, () => {
      socket.write(`GET ${path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\n\r\n`)
    })
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
    })
    socket.once('error', reject)
    socket.once('end', () => resolve(text))
  })
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Each call resolves with the status of the next answer once its body has passed. Chunked bodies end with their last chunk. */
function reader(socket: Socket, isHead = false): () => Promise<number> {
  let done: ((status: number) => void) | undefined
  let status = 0
  let left = -1
  let head = ''
  const finish = () => {
    left = -1
    head = ''
    done?.(status)
  }
  socket.on('data', (chunk: Buffer) => {
    if (left === -1) {
      head += chunk.toString('latin1')
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) return
      status = Number(head.slice(9, 12))
      const length = /\r\ncontent-length: (\d+)/i.exec(head.slice(0, end))
      left = isHead || status === NOT_MODIFIED ? 0 : length ? Number(length[1]) - (head.length - end - 4) : -2
      if (left === -2) {
        if (head.endsWith('0\r\n\r\n')) finish()
      } else if (left === 0) finish()
      return
    }
    if (left === -2) {
      head = (head + chunk.toString('latin1', Math.max(0, chunk.length - 8))).slice(-16)
      if (head.endsWith('0\r\n\r\n')) finish()
      return
    }
    left -= chunk.length
    if (left === 0) finish()
  })
  return () =>
    new Promise((resolve) => {
      done = resolve
    })
}
