import type { HttpError } from '../../lib/errors.ts'
import type { Exchange } from './exchanges.ts'

/** An answer of the proxy itself: plain text, as of the broker. */
export function answerText(
  { outgoing, requestId }: Exchange,
  { status, message, headers }: HttpError,
  isDraining: boolean,
): void {
  outgoing.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(message)),
    'x-request-id': requestId,
    ...(isDraining ? { connection: 'close' } : {}),
    ...headers,
  })
  outgoing.end(message)
}
