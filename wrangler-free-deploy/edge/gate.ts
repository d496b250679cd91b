/** Judges each request before anything else is made of it: who passes is a GET, a HEAD or the export POST of a plain target. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError, tooLarge } from '../../lib/http/errors.ts'
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
  /** Takes a request that was let in. */
  relay: (exchange: Exchange) => void
  /** Whether a path as it came is for an app of ours. */
  isOwn: (path: string) => boolean
  /** Whether a `Host` names this proxy; asked for what is relayed. */
  isAllowedHost: (host: string | undefined) => boolean
}

const OTHER_HOST = wrongHost('ALLOWED_HOSTS lists more')

/**
 * For `listen`, as its `before`: refuses or relays, and leaves to the app what is its own. No URL is made of what is relayed: it takes a tenth
 * of the processor time of a look-up. The target is judged first, since a method is one of a path.
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
  // Node takes away the last coding alone, and requires that to be this one.
  if (coding !== undefined && coding.toLowerCase() !== 'chunked')
    throw new HttpError(400, 'transfer-encoding: expected chunked')
  if (length > MAX_CORE_BODY_BYTES) throw tooLarge(MAX_CORE_BODY_BYTES)
  const fault = hostFault(incoming)
  if (fault !== null) throw new HttpError(400, fault)
  return target
}
