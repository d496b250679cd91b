/** A TCP proxy before a PostgreSQL server that misbehaves on command. */
import { once } from 'node:events'
import net from 'node:net'
import { splitter, statements } from './wire.ts'

/**
 * The fate of a statement. It is lost before it reaches the server, or its answer is lost. `left`: the client is
 * disconnected while the server runs the statement. `muted`: the connection stays open without an answer.
 */
export type Fate = 'answered' | 'question lost' | 'answer lost' | 'left' | 'muted'

export interface FaultyProxy {
  /** For the driver: the server through the proxy. */
  readonly connection: { host: string; port: number; user: string; password: string; database: string }
  /** Client connections accepted so far. */
  readonly accepted: number
  /** Falls silent: connections are accepted and kept, and nothing is passed on. */
  pause(): void
  /** Passes on everything, including what was held back. */
  resume(): void
  /** Resets every connection. */
  cut(): void
  /** Ends the writing side of every client connection, and still reads from it. */
  halfClose(): void
  /** Decides the fate of each later statement by its text. */
  judge(fateOf: (sql: string) => Fate): void
  /** While on, accepts and cleanly closes connections, as a pooler without a server does. */
  slam(on: boolean): void
  /** Closes everything; may be called again. */
  close(): Promise<void>
}

interface Pair {
  client: net.Socket
  upstream: net.Socket
  /** Nothing is passed on to the client any more. */
  parted: boolean
  /** The client is disconnected while the server still runs its statement. */
  isLeft: boolean
}

/**
 * Listens on a free loopback port. `connection` is what the driver accepts: options with a host or socket folder, or a
 * URL.
 */
export async function startProxy(
  connection: string | { host: string; port: number; user: string; database: string },
): Promise<FaultyProxy> {
  const target = typeof connection === 'string' ? fromUrl(connection) : { password: '', ...connection }
  const pairs = new Set<Pair>()
  let accepted = 0
  let paused = false
  let slamming = false
  let closed: Promise<void> | undefined
  let fateOf: (sql: string) => Fate = () => 'answered'

  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    accepted++
    client.on('error', () => {})
    if (slamming) {
      client.end()
      client.resume()
      return
    }
    const upstream = dial(target.host, target.port)
    const pair: Pair = { client, upstream, parted: false, isLeft: false }
    pairs.add(pair)
    upstream.on('error', () => client.destroy())
    client.on('close', () => {
      if (!pair.isLeft) upstream.destroy()
      pairs.delete(pair)
    })
    client.on('end', () => upstream.end())
    converse(pair, (sql) => fateOf(sql))
    upstream.on('end', () => client.end())
    if (paused) hold(pair)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  function hold({ client, upstream }: Pair): void {
    client.pause()
    upstream.pause()
  }

  return {
    connection: { ...target, host: '127.0.0.1', port: (server.address() as net.AddressInfo).port },
    get accepted() {
      return accepted
    },
    pause() {
      paused = true
      for (const pair of pairs) hold(pair)
    },
    resume() {
      paused = false
      for (const { client, upstream } of pairs) {
        client.resume()
        upstream.resume()
      }
    },
    cut() {
      for (const { client } of pairs) {
        // Node 20 does not release a socket that is reset while it is being ended, and then spins at exit.
        if (client.writableEnded) client.destroy()
        else client.resetAndDestroy()
      }
    },
    halfClose() {
      for (const pair of pairs) {
        pair.parted = true
        pair.client.end()
      }
    },
    judge(judge) {
      fateOf = judge
    },
    slam(on) {
      slamming = on
    },
    close() {
      for (const { client } of pairs) client.destroy()
      closed ??= new Promise((resolve) => server.close(() => resolve()))
      return closed
    },
  }
}

/** Passes on both sides, except for statements with another fate. */
function converse(pair: Pair, fateOf: (sql: string) => Fate): void {
  const { client, upstream } = pair
  const asked = splitter('client')
  const answered = splitter('server')
  const statementOf = statements()
  let fate: Fate = 'answered'
  client.on('data', (bytes) => {
    for (const message of asked(bytes)) {
      const sql = statementOf(message)
      if (sql !== undefined) fate = fateOf(sql)
    }
    if (fate !== 'question lost') upstream.write(bytes)
    pair.isLeft = fate === 'left'
    if (fate === 'question lost' || fate === 'left') client.resetAndDestroy()
  })
  upstream.on('data', (bytes) => {
    const isDone = answered(bytes).some(({ type }) => type === 'Z')
    if (fate === 'answered') {
      if (!pair.parted && !client.destroyed) client.write(bytes)
    } else if (isDone && fate !== 'muted') {
      client.resetAndDestroy()
      upstream.destroy()
    }
  })
}

function dial(host: string, port: number): net.Socket {
  return host.startsWith('/')
    ? net.connect({ path: `${host}/.s.PGSQL.${port}` })
    : net.connect({ host, port, noDelay: true })
}

function fromUrl(url: string) {
  const { hostname, port, username, password, pathname } = new URL(url)
  return {
    host: decodeURIComponent(hostname),
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: pathname.slice(1),
  }
}
