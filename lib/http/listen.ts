import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import type { SocketAddress } from '../variables.ts'

/** Longer than clients and proxies keep theirs, so that none is closed under a request. */
const KEEP_ALIVE_MS = 75_000
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 10_000
/** A socket on which nothing moves for so long is cut: a stalled reader must not hold memory for ever. */
const STALLED_SOCKET_MS = 120_000
const IDLE_SWEEP_MS = 100
/** Stands in for a missing `Host`, of which no answer depends: HTTP/1.0 need not send one. Of HTTP/1.1 Node refuses it (RFC 9112, 3.2). */
const HOST_OF_NONE = 'localhost'

/** What is connected, since Node has no list of it. */
const connections = new WeakMap<Server, Set<Socket>>()

type Fetch = Parameters<typeof createAdaptorServer>[0]['fetch']

/** Listens on the first of the addresses that can be bound. */
export async function listen(fetch: Fetch, addresses: readonly SocketAddress[]): Promise<{ server: Server; address: SocketAddress }> {
  const serverOptions = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    noDelay: true,
  }
  let failure: unknown
  for (const { host, port } of addresses) {
    const server = createAdaptorServer({ fetch, createServer, serverOptions, hostname: HOST_OF_NONE }) as Server
    server.setTimeout(STALLED_SOCKET_MS)
    track(server)
    try {
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen({ host, port, backlog: 1024 }, resolve))
      const bound = server.address() as { port: number }
      return { server, address: { host, port: bound.port } }
    } catch (error) {
      failure = error
      // Only a host without that family falls back; a port in use must be told.
      if (!['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'].includes((error as NodeJS.ErrnoException).code ?? '')) break
    }
  }
  throw failure
}

/** Stops accepting, lets requests in flight end for up to `maxMs`, then cuts what is left. */
export async function close(server: Server, maxMs: number): Promise<void> {
  // close() ends idle connections only once; those that were busy then turn idle later.
  const sweep = setInterval(() => {
    server.closeIdleConnections()
    closeSilentConnections(server)
  }, IDLE_SWEEP_MS)
  const cut = setTimeout(() => server.closeAllConnections(), maxMs)
  await new Promise<void>((resolve) => server.close(() => resolve()))
  clearInterval(sweep)
  clearTimeout(cut)
}

function track(server: Server): void {
  const sockets = new Set<Socket>()
  connections.set(server, sockets)
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
}

/** To Node a connection on which nothing ever came is not idle but about to send its first request. */
function closeSilentConnections(server: Server): void {
  for (const socket of connections.get(server) ?? []) if (socket.bytesRead === 0) socket.destroy()
}

export const shown = ({ host, port }: SocketAddress) => `http://${host.includes(':') ? `[${host}]` : host}:${port}`
