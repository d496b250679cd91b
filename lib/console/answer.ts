/** The answers below `/console`, for the broker and for the edge proxy. They hold no data and need no token. */
import { acceptsGzip } from '../http/response/accepts-gzip.ts'
import { matchesEtag } from '../http/response/cached-body.ts'
import { type ConsoleFile, type ConsoleFiles, INDEX } from './files.ts'

export const CONSOLE_PATH = '/console'
const BELOW = `${CONSOLE_PATH}/`
const ASSETS = 'assets/'

/** `connect-src` allows the origin of the page only: the console cannot send data elsewhere. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const SECURITY = {
  'content-security-policy': CONTENT_SECURITY_POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
}
const VARY = { vary: 'accept-encoding' }
/** The names of assets hold a digest of their content. */
const FOREVER = 'public, max-age=31536000, immutable'
/** The browser has to ask whether its copy is still current before each use. */
const ASK_FIRST = 'no-cache'

export interface ConsoleRequest {
  /** `/`, `/console` or a path below that. */
  readonly path: string
  /** The query with its `?`; empty if there is none. */
  readonly search: string
  readonly acceptEncoding: string | undefined
  readonly ifNoneMatch: string | undefined
}

/** For GET; the same without the body for HEAD. */
export interface ConsoleAnswer {
  readonly status: 200 | 304 | 308 | 404
  readonly headers: Record<string, string>
  readonly body: Buffer | null
}

/** The answer to a GET or HEAD. */
export function answerConsole(files: ConsoleFiles, request: ConsoleRequest): ConsoleAnswer {
  const { path, search } = request
  if (path === CONSOLE_PATH) return empty(308, { location: BELOW + search })
  const name = path.startsWith(BELOW) ? path.slice(BELOW.length) : ''
  const file = files.get(name) ?? (isView(name) ? files.get(INDEX) : undefined)
  if (file === undefined) return empty(404)
  return answerFile(file, name.startsWith(ASSETS) ? FOREVER : ASK_FIRST, request)
}

/**
 * Whether a path that names no file may be a view. The page decides which views exist. Names of nodes and workloads
 * contain dots, so below the first level a dot does not make it a file.
 */
const isView = (name: string) => !name.startsWith(ASSETS) && (name.includes('/') || !name.includes('.'))

function answerFile(
  { plain, packed, contentType, plainTag, packedTag }: ConsoleFile,
  cacheControl: string,
  { acceptEncoding, ifNoneMatch }: ConsoleRequest,
): ConsoleAnswer {
  const isPacked = packed !== null && acceptsGzip(acceptEncoding)
  const etag = isPacked ? packedTag : plainTag
  const shared = { ...SECURITY, ...VARY, 'cache-control': cacheControl, etag }
  if (matchesEtag({ tag: etag }, ifNoneMatch)) return { status: 304, headers: shared, body: null }
  const body = isPacked ? packed : plain
  return {
    status: 200,
    headers: {
      ...shared,
      'content-type': contentType,
      'content-length': String(body.length),
      ...(isPacked ? { 'content-encoding': 'gzip' } : {}),
    },
    body,
  }
}

const empty = (status: 308 | 404, headers: Record<string, string> = {}): ConsoleAnswer => ({
  status,
  headers: { ...SECURITY, 'cache-control': ASK_FIRST, 'content-length': '0', ...headers },
  body: null,
})
