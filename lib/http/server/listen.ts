import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { Server as NetServer } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { ConfigError, type SocketAddress } from '../../config/variables.ts'
import { hostCountFault, hostFault, refuseBadHeads, refuseRequest } from './bad-requests.ts'
import { DRAIN_LIMITS, type DrainLimits, drainRequestBody } from './drain-body.ts'
import { Connections, type Cut, READER_LIMITS, type ReaderLimits } from './slow-readers.ts'

/** Longer than clients and proxies keep theirs, so that none is closed under a request. */
const KEEP_ALIVE_MS = 75_000
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 10_000
/** A socket on which nothing moves for so long is cut, whoever is to blame. */
const STALLED_SOCKET_MS = 120_000
/** Stands in for a missing `Host`, of which no answer depends: HTTP/1.0 need not send one. */
const DEFAULT_HOST = 'localhost'
/** Who has sent nothing for so long when the server closes has no request under way. */
const QUIET_MS = 100

const connections = new WeakMap<Server, Connections>()

export interface Listener {
  readonly server: Server
  readonly address: SocketAddress
}

type Fetch = Parameters<typeof createAdaptorServer>[0]['fetch']

export interface ListenOptions {
  /** Those of `READER_LIMITS` unless given. */
  readers?: Partial<ReaderLimits>
  /** Those of `DRAIN_LIMITS` unless given. */
  drain?: Partial<DrainLimits>
  /** Hears of every connection that was cut because its reader was too slow. */
  onCut?: (cut: Cut) => void
  /** Named when no address can be bound. */
  variable?: string
  /** Sees each request first, as it came, before a URL is made of it; true says that it was answered there. */
  before?: (incoming: IncomingMessage, outgoing: ServerResponse) => boolean
}

/** Errors of a host without that family, or without that address. */
const ABSENT = ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL']
/** Why an address cannot be bound, by the code of the error. */
const REASONS: Record<string, string> = {
  EADDRINUSE: 'another program listens there: end it, or choose another address',
  EACCES: 'this user may not listen there: choose a port from 1024',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'nobody knows that name',
}

/**
 * Listens on the first of the addresses that can be bound.
 * @throws ConfigError when none can, and `variable` is given
 */
export async function listen(
  fetch: Fetch,
  addresses: readonly SocketAddress[],
  { readers = {}, drain = {}, onCut = () => {}, variable, before = () => false }: ListenOptions = {},
): Promise<Listener> {
  const serverOptions = {
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    noDelay: true,
    // That is judged here, with an answer that has a text.
    requireHostHeader: false,
  }
  const drainLimits = { ...DRAIN_LIMITS, ...drain }
  const create = (options: ServerOptions, listener: RequestListener) =>
    createServer(options, (incoming, outgoing) => {
      // Nobody would get an answer on a connection that has ended with the one before.
      if (incoming.socket.writableEnded) return
      drainRequestBody(incoming, outgoing, drainLimits)
      const countFault = hostCountFault(incoming)
      if (countFault !== null) return refuseRequest(outgoing, countFault)
      if (before(incoming, outgoing)) return
      const fault = hostFault(incoming)
      if (fault === null) listener(incoming, outgoing)
      else refuseRequest(outgoing, fault)
    })
  let failure: unknown
  for (const one of addresses) {
    const { host, port } = one
    const server = createAdaptorServer({
      fetch,
      createServer: create as typeof createServer,
      serverOptions,
      hostname: DEFAULT_HOST,
      autoCleanupIncoming: false,
    }) as Server
    server.setTimeout(STALLED_SOCKET_MS)
    server.on('checkContinue', sendContinue)
    const open = new Connections(server, { ...READER_LIMITS, ...readers }, onCut)
    connections.set(server, open)
    refuseBadHeads(server, open)
    try {
      await new Promise<void>((resolve, reject) =>
        server.once('error', reject).listen({ host, port, backlog: 1024 }, resolve),
      )
      const bound = server.address() as { port: number }
      return { server, address: { host, port: bound.port } }
    } catch (error) {
      failure = variable === undefined ? error : unusable(variable, one, error as NodeJS.ErrnoException)
      // Only a host without that family falls back; a port in use must be told.
      if (!isAbsent(error)) break
    }
  }
  throw failure
}

const isAbsent = (error: unknown) => ABSENT.includes((error as NodeJS.ErrnoException).code ?? '')

function unusable(variable: string, address: SocketAddress, cause: NodeJS.ErrnoException): ConfigError {
  const { code = cause.message } = cause
  const reason = REASONS[code]
  const place = shown(address).slice('http://'.length)
  return new ConfigError(`${variable}: ${place} cannot be used (${code})${reason === undefined ? '' : `: ${reason}`}`, {
    cause,
  })
}

/**
 * Listens on every one of the addresses, but for those of a family that this host lacks. When one of the others cannot be bound, none is.
 * @throws as `listen`
 */
export async function listenOnEach(
  fetch: Fetch,
  addresses: readonly SocketAddress[],
  options: ListenOptions = {},
): Promise<Listener[]> {
  const listeners: Listener[] = []
  for (const address of addresses) {
    try {
      listeners.push(await listen(fetch, [address], options))
    } catch (error) {
      if (listeners.length > 0 && isAbsent(error instanceof ConfigError ? error.cause : error)) continue
      for (const { server } of listeners) server.close()
      throw error
    }
  }
  return listeners
}

/**
 * As Node does it unasked, but for a request that came in one breath with others: this one is begun when its answer may be written. Else its
 * `100 Continue` would wait with the answer, and Node puts the head of that before it and the body behind (RFC 9110, 10.1.1).
 */
function sendContinue(this: Server, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const begin = () => {
    outgoing.writeContinue()
    this.emit('request', incoming, outgoing)
  }
  if (outgoing.socket) begin()
  else outgoing.once('socket', begin)
}

/** Stops accepting, lets requests in flight end and their answers leave for up to `maxMs`, then cuts what is left. */
export async function close(server: Server, maxMs: number): Promise<void> {
  const open = connections.get(server)!
  const sweep = setInterval(() => open.endQuiet(), QUIET_MS)
  const cut = setTimeout(() => open.cutAll(), maxMs)
  // That of http would at once end the connections of answers that have been written and have not left.
  await new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
  clearInterval(sweep)
  clearTimeout(cut)
}

export const shown = ({ host, port }: SocketAddress) => `http://${host.includes(':') ? `[${host}]` : host}:${port}`
