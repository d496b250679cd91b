import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { SocketAddress } from '../../config/variables.ts'
import { ConfigError } from '../../errors.ts'
import { hostCountFault, hostFault, refuseBadHeads, refuseBadUrl, refuseRequest } from './bad-requests.ts'
import { DRAIN_LIMITS, type DrainLimits, drainRequestBody } from './drain-body.ts'
import { Connections, type Cut, READER_LIMITS, type ReaderLimits } from './slow-readers.ts'

/** Longer than clients and proxies keep theirs, so that none is closed under a request. */
const KEEP_ALIVE_MS = 75_000
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 10_000
/** A socket without any traffic is closed after this time. */
const STALLED_SOCKET_MS = 120_000
/** Replaces a missing `Host`, which HTTP/1.0 may leave out. No answer depends on it. */
const DEFAULT_HOST = 'localhost'
/** While the server closes, a connection that has sent nothing for so long has no request in flight. */
const QUIET_MS = 100

const connections = new WeakMap<Server, Connections>()

export interface Listener {
  readonly server: Server
  readonly address: SocketAddress
}

type Fetch = Parameters<typeof getRequestListener>[0]

export interface ListenOptions {
  /** Override `READER_LIMITS`. */
  readers?: Partial<ReaderLimits>
  /** Override `DRAIN_LIMITS`. */
  drain?: Partial<DrainLimits>
  /** Called for every connection that was reset because its reader was too slow. */
  onCut?: (cut: Cut) => void
  /** The variable with the addresses, for the error when none can be bound. */
  variable?: string
  /** Called first for each request, before its URL is parsed; returns whether it has answered. */
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
    // Checked below, with an answer that has a text.
    requireHostHeader: false,
  }
  const drainLimits = { ...DRAIN_LIMITS, ...drain }
  const listener = getRequestListener(fetch, {
    hostname: DEFAULT_HOST,
    autoCleanupIncoming: false,
    errorHandler: refuseBadUrl,
  })
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    // The answer before has ended the connection: no other can be sent.
    if (incoming.socket.writableEnded) return
    drainRequestBody(incoming, outgoing, drainLimits)
    const countFault = hostCountFault(incoming)
    if (countFault !== null) return refuseRequest(outgoing, countFault)
    if (before(incoming, outgoing)) return
    const fault = hostFault(incoming)
    if (fault === null) listener(incoming, outgoing)
    else refuseRequest(outgoing, fault)
  }
  let failure: unknown
  for (const one of addresses) {
    const { host, port } = one
    const server = createServer(serverOptions, answer)
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
      // Only a missing address family falls back to the next address; a port in use is an error.
      if (!isAbsent(error)) break
    }
  }
  throw failure
}

const isAbsent = (error: unknown) => ABSENT.includes((error as NodeJS.ErrnoException).code ?? '')

function unusable(variable: string, address: SocketAddress, cause: NodeJS.ErrnoException): ConfigError {
  const { code = cause.message } = cause
  const reason = REASONS[code]
  const name = displayAddress(address).slice('http://'.length)
  return new ConfigError(`${variable}: ${name} cannot be used (${code})${reason === undefined ? '' : `: ${reason}`}`, {
    cause,
  })
}

/**
 * Listens on all addresses but those of a family that this host lacks. When one of the others cannot be bound, none is.
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
 * Sends `100 Continue` as Node does, but starts a pipelined request only when its answer may be written. Otherwise the
 * `100 Continue` would be queued with the answer, between its head and its body (RFC 9110, 10.1.1).
 */
function sendContinue(this: Server, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const begin = () => {
    outgoing.writeContinue()
    this.emit('request', incoming, outgoing)
  }
  if (outgoing.socket) begin()
  else outgoing.once('socket', begin)
}

/** Stops accepting, lets requests in flight end and their answers be sent for up to `maxMs`, then closes the rest. */
export async function close(server: Server, maxMs: number): Promise<void> {
  const open = connections.get(server)!
  const sweep = setInterval(() => open.endQuiet(), QUIET_MS)
  const cut = setTimeout(() => open.cutAll(), maxMs)
  // `close` of http would at once end connections whose answers were written and not yet sent.
  await new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
  clearInterval(sweep)
  clearTimeout(cut)
}

export const displayAddress = ({ host, port }: SocketAddress) =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`
