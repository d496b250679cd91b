import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

const TEXT = 'method CONNECT is not forwarded here'
const ANSWER = [
  'HTTP/1.1 405 Method Not Allowed',
  'allow: GET, HEAD',
  'content-type: text/plain; charset=utf-8',
  `content-length: ${TEXT.length}`,
  'connection: close',
  '',
  TEXT,
].join('\r\n')

/** Answers CONNECT requests, which Node hands over as a bare connection, since they ask for a tunnel. */
export function refuseConnect(_: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => {})
  socket.end(ANSWER)
}
