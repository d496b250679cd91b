/** Checks each request first: only GET, HEAD and a POST that reads pass, of a plain target. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError, tooLarge } from '../../lib/errors.ts'
import { wrongHost } from '../../lib/http/server/allowed-hosts.ts'
import { hostFault } from '../../lib/http/server/bad-requests.ts'
import { answerText } from './answer.ts'
import type { Exchange, Exchanges } from './exchanges.ts'
import { maxBodyBytesOf, methodsOf, readTarget, type Target } from './target.ts'

export interface GateOptions {
  exchanges: Exchanges
  basePath: string
  draining: () => boolean
  /** Handles an accepted request. */
  relay: (exchange: Exchange) => void
  /** Answers an accepted request with a file of the console; null without a console. */
  serveConsole: ((exchange: Exchange) => void) | null
  /** Whether the app answers the path itself. */
  isOwn: (path: string) => boolean
  /** Whether a `Host` names this proxy; checked for relayed requests and those of the console. */
  isAllowedHost: (host: string | undefined) => boolean
}

const OTHER_HOST = wrongHost('ALLOWED_HOSTS lists more')

/**
 * The `before` of `listen`: refuses, relays or serves the console, and leaves its own paths to the app. Relayed
 * requests get no URL object, which would take a tenth of the processor time of a request. The target is checked first,
 * because the allowed methods depend on the path.
 */
export function createGate(options: GateOptions) {
  const { exchanges, basePath, draining, relay, serveConsole, isOwn, isAllowedHost } = options
  return (incoming: IncomingMessage, outgoing: ServerResponse): boolean => {
    const exchange = exchanges.begin(incoming, outgoing)
    try {
      exchange.target = judge(incoming, basePath, serveConsole !== null)
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      answerText(exchange, error, draining())
      return true
    }
    if (isOwn(incoming.url!.split('?', 1)[0]!)) return false
    if (!isAllowedHost(incoming.headers.host)) answerText(exchange, OTHER_HOST, draining())
    else if (exchange.target.isConsole) serveConsole!(exchange)
    else relay(exchange)
    return true
  }
}

/** @throws HttpError 400, 405, 413 */
function judge(incoming: IncomingMessage, basePath: string, hasConsole: boolean): Target {
  const { method, url, headers } = incoming
  const target = readTarget(url!, basePath, hasConsole)
  const methods = methodsOf(target.path, hasConsole)
  if (!methods.includes(method!))
    throw new HttpError(405, `method ${method} is not forwarded here`, { allow: methods.join(', ') })
  const length = Number(headers['content-length'] ?? 0)
  const coding = headers['transfer-encoding']
  if (method !== 'POST' && (length > 0 || coding !== undefined))
    throw new HttpError(400, `a ${method} may not have a body`)
  // Node removes only the last coding, and requires it to be `chunked`.
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new HttpError(400, 'transfer-encoding: expected chunked')
  const maxBytes = maxBodyBytesOf(target.path)
  if (length > maxBytes) throw tooLarge(maxBytes)
  const fault = hostFault(incoming)
  if (fault !== null) throw new HttpError(400, fault)
  return target
}
