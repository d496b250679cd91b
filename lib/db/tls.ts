/**
 * Makes a fresh socket as private as asked, before the driver gets it: the driver's own TLS speaks it to servers that have none,
 * checks the name of an IP address against `localhost`, and knows neither `allow` nor `verify-ca`.
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
const ERROR = 0x45
const PROTOCOL = 196_608
const ANSWER_MS = 5_000
const MAX_ANSWER_BYTES = 16 * 1024

/** `socket` itself where nothing is to be done, else a promise that never rejects: what failed ends the socket it gives. */
export function secured(
  socket: net.Socket,
  endpoint: Endpoint,
  index: number,
  settings: TlsSettings = { mode: 'disable' },
): net.Socket | Promise<net.Socket> {
  if (settings.mode === 'disable') return socket
  // Between two listeners, too, an error must not be one that nobody hears.
  socket.on('error', () => {})
  return negotiated(socket, endpoint, index, settings).catch((error: Error) => {
    socket.destroy()
    const dead = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
    // The driver listens once it has it, and writes in the round after that: cut off before, it would never write again.
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
  if (mode === 'allow' && !(await isPlainRefused(endpoint, index))) return socket
  if (settings.direct) return handshake(socket, name, settings)

  const answer = await firstBytes(socket, SSL_REQUEST)
  // More than the one byte was sent by somebody in between, to be taken for what comes over TLS (CVE-2021-23222).
  if (answer.length === 1 && answer[0] === YES) return handshake(socket, name, settings)
  // With `allow` the server gets to say once more why it refused.
  if (answer.length === 1 && answer[0] === NO && (mode === 'prefer' || mode === 'allow')) return socket
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

/** Whether the server turns away who comes without TLS; asked on a connection of its own, as libpq's `allow` tries. */
async function isPlainRefused({ host, port, user, database }: Endpoint, index: number): Promise<boolean> {
  const at = index % host.length
  const socket = net.connect({ host: host[at]!, port: port[at]! })
  const fields = Buffer.from(`user\0${user ?? ''}\0database\0${database ?? ''}\0\0`)
  const head = Buffer.alloc(8)
  head.writeInt32BE(head.length + fields.length)
  head.writeInt32BE(PROTOCOL, 4)
  try {
    const answer = await firstBytes(socket, Buffer.concat([head, fields]), isWhole)
    if (answer[0] !== ERROR) return false
    const code = /\0C([0-9A-Z]{5})\0/.exec(answer.toString('latin1'))?.[1] ?? ''
    // pg_hba.conf has no line for us; a pooler calls it a violation of the protocol.
    return code.startsWith('28') || code === '08P01'
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

const isWhole = (bytes: Buffer) => bytes[0] !== ERROR || (bytes.length >= 5 && bytes.length > bytes.readInt32BE(1))

/** What the server answers first. Leaves no listener behind. */
function firstBytes(
  socket: net.Socket,
  question: Buffer,
  isEnough: (bytes: Buffer) => boolean = () => true,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    const done = (error: Error | null) => {
      clearTimeout(timer)
      for (const [event, listener] of Object.entries(listeners)) socket.off(event, listener as () => void)
      if (error) reject(error)
      else resolve(bytes)
    }
    const listeners: Record<string, (...values: never[]) => void> = {
      data: (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk])
        if (bytes.length > MAX_ANSWER_BYTES || isEnough(bytes)) done(null)
      },
      error: (error: Error) => done(error),
      close: () =>
        done(
          Object.assign(new Error('the connection ended before its first answer'), {
            code: 'ECONNRESET',
            syscall: 'read',
          }),
        ),
    }
    const timer = setTimeout(() => done(failed(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS)
    for (const [event, listener] of Object.entries(listeners)) socket.on(event, listener as () => void)
    socket.write(question)
  })
}

const failed = (reason: string) => new DatabaseUnavailable(`TLS: ${reason}`, 'TLS_FAILED')
