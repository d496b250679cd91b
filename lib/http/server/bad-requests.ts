/**
 * Refuses bytes that are not a request, and requests without exactly one host, before routing. Node answers some of
 * these without a text.
 */
import http, { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { RequestError } from '@hono/node-server'
import { requestId } from '../request/request-id.ts'
import type { Connections } from './slow-readers.ts'

/** A client that is still sending would lose the answer if the connection were closed at once (RFC 9112, 9.6). */
const READ_ON_MS = 1_000

/** An invalid host must be refused (RFC 9112, 3.2), although no route depends on it. */
const HOST = /^(?:[\w.~-]*|\[[\da-f:.]+\])(?::\d*)?$/i

/** Null where a request names its host once; HTTP/1.0 may leave it out. Else the error text. */
export function hostCountFault({ rawHeaders, httpVersion }: IncomingMessage): string | null {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') count++
  return count === 1 || (count === 0 && httpVersion === '1.0') ? null : `host: expected one field, not ${count}`
}

/** Null where the host is a name or an address, with a port or without. Else the error text. */
export const hostFault = ({ headers: { host } }: IncomingMessage): string | null =>
  host === undefined || HOST.test(host) ? null : 'host: expected a name or an address, with a port or without'

const fieldsOf = (text: string) => ({
  'content-type': 'text/plain; charset=utf-8',
  'content-length': String(Buffer.byteLength(text)),
  connection: 'close',
  'x-request-id': requestId(undefined),
})

/** 400 with a text. */
export function refuseRequest(outgoing: ServerResponse, text: string): void {
  outgoing.writeHead(400, fieldsOf(text))
  outgoing.end(text)
}

/** The answer where the adapter throws: 400 with a text where target and host make no URL, else 500. */
export function refuseBadUrl(error: unknown): Response {
  if (!(error instanceof RequestError)) return new Response(null, { status: 500 })
  const text = 'the target and the host of the request make no URL'
  return new Response(text, { status: 400, headers: fieldsOf(text) })
}

/**
 * Answers bytes that are not a request, unless another answer is being sent: the client could not see where that ends.
 */
export function refuseBadHeads(server: Server, connections: Connections): void {
  const refused = new WeakSet<Socket>()
  server.on('clientError', (error: Error & { code?: string; reason?: string; rawPacket?: Buffer }, socket: Socket) => {
    if (refused.has(socket)) return
    refused.add(socket)
    if (error.code === 'ECONNRESET' || !socket.writable || connections.hasBegun(socket)) {
      socket.destroy(error)
      return
    }
    const [status, text] = refusalOf(error)
    const method = methodIn(error.rawPacket)
    // The method of a long head arrived in an earlier packet, and a packet may begin with the rest of a body: where the
    // method may be HEAD, the text stands in the status line.
    const isUnknown =
      (status === 431 && method === undefined) || (method !== 'HEAD' && error.rawPacket?.includes('HEAD '))
    const reason = isUnknown ? text : STATUS_CODES[status]
    const fields = Object.entries(fieldsOf(isUnknown ? '' : text)).map(([name, value]) => `${name}: ${value}\r\n`)
    // After HEAD the client would take a text for the next answer.
    const content = isUnknown || method === 'HEAD' ? '' : text
    socket.end(`HTTP/1.1 ${status} ${reason}\r\n${fields.join('')}\r\n${content}`)
    const cut = setTimeout(() => socket.destroy(), READ_ON_MS).unref()
    socket.once('close', () => clearTimeout(cut))
  })
}

/** The method, if the packet begins with one. */
const methodIn = (packet: Buffer | undefined) => /^([A-Z]+) /.exec(packet?.toString('latin1', 0, 16) ?? '')?.[1]

function refusalOf({ code, reason }: { code?: string; reason?: string }): [status: number, text: string] {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return [431, `the head of the request is larger than ${http.maxHeaderSize} bytes`]
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return [413, 'the extensions of a chunk are too long']
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'the request did not arrive in time']
    default:
      return [400, `the request is not HTTP: ${reason ?? 'it cannot be read'}`]
  }
}
