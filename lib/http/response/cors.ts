/** Lets the web pages of the origins in `CORS_ORIGINS` read an answer. Without any, no header field of CORS is sent. */
import type { Context } from '../route.ts'
import { header } from '../route.ts'

const ALLOW = 'access-control-allow-origin'
const EXPOSE = 'access-control-expose-headers'

/** Completes the header fields of an answer, in place. */
export function allowOrigin(c: Context, headers: Record<string, string>): Record<string, string> {
  const { corsOrigins } = c.get('deps').config
  if (corsOrigins[0] === '*') {
    headers[ALLOW] = '*'
    return headers
  }
  if (corsOrigins.length > 0) {
    headers.vary = headers.vary === undefined ? 'origin' : `${headers.vary}, origin`
    const origin = header(c, 'origin')
    if (origin !== undefined && corsOrigins.includes(origin)) {
      headers[ALLOW] = origin
      return headers
    }
  }
  if (headers[EXPOSE] !== undefined) delete headers[EXPOSE]
  return headers
}
