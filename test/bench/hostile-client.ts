/** Clients that send everything at once, a little at a time, or read hardly anything. */
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

const HOST = '127.0.0.1'

/** Those of the broker: payloads of scanners are taken from nobody without one. */
export const TOKENS = {
  BROKER_TOKEN_INGEST: 'hostile-ingest-token',
  BROKER_TOKEN_SUPPLYCHAIN: 'hostile-supplychain-token',
}

export interface Answers {
  /** How often each status came; `cut` for a connection that ended without one, `silent` for none in time. */
  statuses: Map<string, number>
  firstMs: number
  slowestMs: number
}

export interface Reply {
  status: string
  ms: number
}

export function head(method: string, path: string, headers = ''): string {
  const token =
    method === 'POST' && path.startsWith('/images/') ? TOKENS.BROKER_TOKEN_SUPPLYCHAIN : TOKENS.BROKER_TOKEN_INGEST
  return `${method} ${path} HTTP/1.1\r\nhost: broker\r\nconnection: close\r\nauthorization: Bearer ${token}\r\n${headers}\r\n`
}

export const postHead = (path: string, bytes: number, gzip: boolean, method = 'POST') =>
  head(
    method,
    path,
    `content-type: application/json\r\ncontent-length: ${bytes}\r\n${gzip ? 'content-encoding: gzip\r\n' : ''}`,
  )

/** Sends all bodies at the same time, each on a connection of its own, and waits for the answers. */
export async function attack(
  port: number,
  { method, path }: { method?: string; path: string },
  bodies: Buffer[],
  gzip: boolean,
  limitMs: number,
): Promise<Answers> {
  const replies = await Promise.all(
    bodies.map((body) => exchange(port, [postHead(path, body.length, gzip, method), body], limitMs)),
  )
  return tally(replies)
}

export function tally(replies: Reply[]): Answers {
  const statuses = new Map<string, number>()
  for (const { status } of replies) statuses.set(status, (statuses.get(status) ?? 0) + 1)
  const times = replies.map(({ ms }) => ms)
  return { statuses, firstMs: Math.min(...times), slowestMs: Math.max(...times) }
}

/** One request; settles with its status when the whole answer has come. */
export function exchange(port: number, parts: (string | Buffer)[], limitMs: number): Promise<Reply> {
  return new Promise((resolve) => {
    const startedAt = performance.now()
    let text = ''
    const socket = connect({ port, host: HOST, noDelay: true })
    const finish = (status: string) => {
      clearTimeout(limit)
      socket.destroy()
      resolve({ status, ms: performance.now() - startedAt })
    }
    const limit = setTimeout(() => finish('silent'), limitMs)
    const status = () => (text.startsWith('HTTP/1.1 ') ? text.slice(9, 12) : 'cut')
    socket.on('data', (chunk) => {
      if (text.length < 12) text += chunk.toString('latin1', 0, 12)
    })
    // Whoever refuses a body by its announced length need not read it: the answer counts, the cut does not.
    socket.on('error', () => finish(status()))
    socket.on('end', () => finish(status()))
    socket.on('close', () => finish(status()))
    for (const part of parts) socket.write(part)
  })
}

export interface Hanging {
  /** Still connected. */
  readonly open: number
  stop(): void
}

/** Announces a large body and sends `bytesPerSecond` of it. */
export function trickle(
  port: number,
  path: string,
  count: number,
  announcedBytes: number,
  bytesPerSecond: number,
): Hanging {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: HOST, noDelay: true })
    socket.on('error', () => {})
    socket.on('data', () => {})
    socket.write(`${postHead(path, announcedBytes, false)}[`)
    return socket
  })
  const more = Buffer.from(' '.repeat(Math.max(1, Math.round(bytesPerSecond / 10))))
  const timer = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write(more)
  }, 100)
  return hanging(sockets, () => clearInterval(timer))
}

/** Readers that take `bytesPerSecond` of an answer; 0 takes nothing at all. */
export function readSlowly(port: number, path: string, count: number, bytesPerSecond: number): Hanging {
  const sockets = Array.from({ length: count }, () => slowReader(port, path, bytesPerSecond))
  return hanging(sockets, () => {})
}

function slowReader(port: number, path: string, bytesPerSecond: number): Socket {
  const buffer = Buffer.alloc(Math.max(1, Math.round(bytesPerSecond / 10)))
  const socket = connect({
    port,
    host: HOST,
    onread: {
      buffer,
      callback: () => {
        // Paused until it is due again: what is not read stays with the server.
        setTimeout(() => socket.resume(), 100).unref()
        return false
      },
    },
  })
  socket.on('error', () => {})
  socket.once('connect', () => {
    socket.write(head('GET', path))
    if (bytesPerSecond === 0) socket.pause()
  })
  return socket
}

function hanging(sockets: Socket[], end: () => void): Hanging {
  return {
    get open() {
      return sockets.filter((socket) => !socket.destroyed).length
    },
    stop() {
      end()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Asks again and again until told to stop, one request at a time. */
export function prober(port: number, parts: (string | Buffer)[], everyMs: number, limitMs: number) {
  const replies: (Reply & { at: number })[] = []
  const startedAt = performance.now()
  let stopped = false
  const done = (async () => {
    while (!stopped) {
      const at = performance.now() - startedAt
      replies.push({ ...(await exchange(port, parts, limitMs)), at })
      await delay(everyMs)
    }
  })()
  return {
    replies,
    async stop() {
      stopped = true
      await done
      return replies
    },
  }
}
