/** Checks each request first: only GET, HEAD and the export POST of a plain target pass. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError, tooLarge } from '../../lib/errors.ts'
import { wrongHost } from '../../lib/http/server/allowed-hosts.ts'
import { hostFault } from '../../lib/http/server/bad-requests.ts'
import { MAX_CORE_BODY_BYTES } from '../../lib/limits/limits.ts'
import { answerText } from './answer.ts'
import type { Exchange, Exchanges } from './exchanges.ts'
import { methodsOf, readTarget, type Target } from './target.ts'

export interface GateOptions {
  exchanges: Exchanges
  basePath: string
  draining: () => boolean
  /** Handles an accepted request. */
  relay: (exchange: Exchange) => void
  /** Whether the app answers the path itself. */
  isOwn: (path: string) => boolean
  /** Whether a `Host` names this proxy; checked for relayed requests. */
  isAllowedHost: (host: string | undefined) => boolean
}

const OTHER_HOST = wrongHost('ALLOWED_HOSTS lists more')

/**
 * The `before` of `listen`: refuses or relays, and leaves its own paths to the app. Relayed requests get no URL object,
 * which would take a tenth of the processor time of a request. The target is checked first, because the allowed methods
 * depend on the path.
 */
export function createGate({ exchanges, basePath, draining, relay, isOwn, isAllowedHost }: GateOptions) {
  return (incoming: IncomingMessage, outgoing: ServerResponse): boolean => {
    const exchange = exchanges.begin(incoming, outgoing)
    try {
      exchange.target = judge(incoming, basePath)
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      answerText(exchange, error, draining())
      return true
    }
    if (isOwn(incoming.url!.split('?', 1)[0]!)) return false
    if (isAllowedHost(incoming.headers.host)) relay(exchange)
    else answerText(exchange, OTHER_HOST, draining())
    return true
  }
}

/** @throws HttpError 400, 405, 413 */
function judge(incoming: IncomingMessage, basePath: string): Target {
  const { method, url, headers } = incoming
  const target = readTarget(url!, basePath)
  const methods = methodsOf(target.path)
  if (!methods.includes(method!))
    throw new HttpError(405, `method ${method} is not forwarded here`, { allow: methods.join(', ') })
  const length = Number(headers['content-length'] ?? 0)
  const coding = headers['transfer-encoding']
  if (method !== 'POST' && (length > 0 || coding !== undefined))
    throw new HttpError(400, `a ${method} may not have a body`)
  // Node removes only the last coding, and requires it to be `chunked`.
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new HttpError(400, 'transfer-encoding: expected chunked')
  if (length > MAX_CORE_BODY_BYTES) throw tooLarge(MAX_CORE_BODY_BYTES)
  const fault = hostFault(incoming)
  if (fault !== null) throw new HttpError(400, fault)
  return target
}
