/**
 * Secures a fresh socket before the driver gets it. The driver's own TLS is not used: it speaks TLS to servers without
 * it, checks the name of an IP address against `localhost`, and does not know `verify-ca`.
 */
import net from 'node:net'
import { Duplex } from 'node:stream'
import { type ConnectionOptions, connect } from 'node:tls'
import { DatabaseUnavailable } from './errors.ts'
import type { Endpoint } from './socket.ts'
import { readFiles, type TlsSettings } from './tls-settings.ts'

const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const YES = 0x53
const NO = 0x4e
const ANSWER_MS = 5_000

/**
 * `socket` itself without TLS, else a promise that never rejects: after a failure it resolves to a socket that ends
 * with the error.
 */
export function secured(
  socket: net.Socket,
  endpoint: Endpoint,
  index: number,
  settings: TlsSettings = { mode: 'disable' },
): net.Socket | Promise<net.Socket> {
  if (settings.mode === 'disable') return socket
  // An error between two listeners must not be unhandled.
  socket.on('error', () => {})
  return negotiated(socket, endpoint, index, settings).catch((error: Error) => {
    socket.destroy()
    const dead = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
    // The driver listens when it has the socket, and writes one round later. A socket that ends before makes it hang.
    setImmediate(() => setImmediate(() => dead.destroy(error)))
    return dead as net.Socket
  })
}

async function negotiated(
  socket: net.Socket,
  endpoint: Endpoint,
  index: number,
  settings: TlsSettings,
): Promise<net.Socket> {
  const { mode } = settings
  const name = endpoint.host[index % endpoint.host.length]!
  if (settings.direct) return handshake(socket, name, settings)

  const answer = await firstBytes(socket)
  // Further bytes come from a man in the middle, who wants them to be taken for data that came over TLS
  // (CVE-2021-23222).
  if (answer.length === 1 && answer[0] === YES) return handshake(socket, name, settings)
  if (answer.length === 1 && answer[0] === NO && mode === 'prefer') return socket
  if (answer[0] === NO) throw failed(`the server has no TLS, and sslmode=${mode} asks for it`)
  throw failed('the server did not answer the request for TLS')
}

function handshake(socket: net.Socket, name: string, settings: TlsSettings): Promise<net.Socket> {
  const options: ConnectionOptions = {
    ...readFiles(settings),
    socket,
    host: name,
    ...(net.isIP(name) ? {} : { servername: name }),
    ...(settings.direct ? { ALPNProtocols: ['postgresql'] } : {}),
    rejectUnauthorized: settings.mode.startsWith('verify'),
    ...(settings.mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
  }
  return new Promise((resolve, reject) => {
    const secure = connect(options)
    const fail = (error: NodeJS.ErrnoException) => reject(error.syscall === undefined ? failed(error.message) : error)
    const end = () => fail(new Error('the connection ended in the handshake'))
    const timer = setTimeout(() => secure.destroy(new Error(`no handshake within ${ANSWER_MS} ms`)), ANSWER_MS)
    secure.on('error', fail)
    secure.on('close', end)
    secure.once('close', () => clearTimeout(timer))
    secure.once('secureConnect', () => {
      clearTimeout(timer)
      secure.off('error', fail)
      secure.off('close', end)
      resolve(secure)
    })
  })
}

/** Asks the server for TLS; resolves to the first bytes of its answer. Leaves no listener behind. */
function firstBytes(socket: net.Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, bytes?: Buffer) => {
      clearTimeout(timer)
      for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener as () => void)
      if (error) reject(error)
      else resolve(bytes!)
    }
    const reset = { code: 'ECONNRESET', syscall: 'read' }
    const listeners: Record<string, (...values: never[]) => void> = {
      data: (chunk: Buffer) => done(null, chunk),
      error: (error: Error) => done(error),
      close: () => done(Object.assign(new Error('the connection ended before its first answer'), reset)),
    }
    const timer = setTimeout(() => done(failed(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS)
    for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener as () => void)
    socket.write(SSL_REQUEST)
  })
}

const failed = (reason: string) => new DatabaseUnavailable(`TLS: ${reason}`, 'TLS_FAILED')
