import { answerConsole } from '../../lib/console/answer.ts'
import type { ConsoleFiles } from '../../lib/console/files.ts'
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

/** The answer of the console to an accepted request. */
export function answerFromConsole(exchange: Exchange, files: ConsoleFiles, isDraining: boolean): void {
  const { incoming, outgoing, requestId, target } = exchange
  const { status, headers, body } = answerConsole(files, {
    ...target!,
    acceptEncoding: incoming.headers['accept-encoding'] as string | undefined,
    ifNoneMatch: incoming.headers['if-none-match'],
  })
  outgoing.writeHead(status, {
    ...headers,
    'x-request-id': requestId,
    ...(isDraining ? { connection: 'close' } : {}),
  })
  if (body === null || incoming.method === 'HEAD') {
    outgoing.end()
    return
  }
  exchange.bytes = body.length
  outgoing.end(body)
}
