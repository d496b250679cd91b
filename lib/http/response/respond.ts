import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { MiddlewareHandler } from 'hono'
import { GZIP_MIN_BYTES } from '../../limits/limits.ts'
import type { Context, Env } from '../route.ts'
import { header } from '../route.ts'
import { acceptsGzip } from './accepts-gzip.ts'
import { type CachedBody, cacheBody, matchesEtag } from './cached-body.ts'
import { allowOrigin } from './cors.ts'
import { MAX_WHOLE_BYTES, once, type Pieces, packed, sliced } from './stream.ts'

/** A string is sent in one write with its headers, bytes in a second one. Above this, making the string costs more. */
const MAX_STRING_BYTES = 64 * 1024

const gzipAsync = promisify(gzip)

/** The headers of every answer. A plain object: web `Headers` leave the fast path of the adapter, at half the rate. */
function headersFor(c: Context, contentType: string, extra?: Record<string, string>): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': contentType,
    'x-request-id': c.get('requestId'),
  }
  if (c.get('deps').draining()) headers.connection = 'close'
  return allowOrigin(c, extra ? Object.assign(headers, extra) : headers)
}

/** A plain text answer of any status; bytes are sent as they are, without a copy. */
export const respond = (c: Context, status: number, text: string | Buffer, extra?: Record<string, string>): Response =>
  whole(c, status, 'text/plain; charset=utf-8', text, extra)

/** A short JSON answer of another status. */
export const sendShortJson = (c: Context, status: number, json: string): Response =>
  whole(c, status, 'application/json', json)

function whole(
  c: Context,
  status: number,
  contentType: string,
  body: string | Buffer,
  extra?: Record<string, string>,
): Response {
  const length = Buffer.byteLength(body)
  c.set('bytes', length)
  const headers = headersFor(c, contentType, extra)
  headers['content-length'] = String(length)
  return new Response(body as string | Uint8Array<ArrayBuffer>, { status, headers })
}

/** An answer without a body. */
export function respondEmpty(c: Context, status: number): Response {
  c.set('bytes', 0)
  const { 'content-type': _, ...headers } = headersFor(c, '')
  headers['content-length'] = '0'
  return new Response(null, { status, headers })
}

/**
 * 200 with JSON that is already text or bytes, compressed when accepted and worth it. `extra` headers are added to the
 * usual ones or replace them.
 */
export function sendJson(
  c: Context,
  body: Buffer | string,
  extra?: Record<string, string>,
): Response | Promise<Response> {
  if (Buffer.byteLength(body) >= GZIP_MIN_BYTES)
    return sendLarge(c, typeof body === 'string' ? Buffer.from(body) : body, extra)
  return sendBody(c, body, extra)
}

function sendBody(c: Context, body: Buffer | string, extra?: Record<string, string>): Response {
  const length = Buffer.byteLength(body)
  c.set('bytes', length)
  const headers = headersFor(c, 'application/json', extra)
  headers['content-length'] = String(length)
  const share = c.get('share')
  if (typeof body !== 'string' && length > MAX_WHOLE_BYTES)
    return new Response(sliced(once(body), share), { status: 200, headers })
  share?.keep(length)
  const isShort = typeof body === 'string' || (length <= MAX_STRING_BYTES && !headers['content-encoding'])
  return new Response(isShort ? body.toString() : (body as Uint8Array<ArrayBuffer>), { status: 200, headers })
}

function sendLarge(c: Context, bytes: Buffer, extra?: Record<string, string>): Response | Promise<Response> {
  if (!acceptsGzip(header(c, 'accept-encoding'))) return sendBody(c, bytes, { ...VARY, ...extra })
  return gzipAsync(bytes, { level: constants.Z_BEST_SPEED }).then((packed) =>
    sendBody(c, packed, { ...PACKED, ...extra }),
  )
}

/** The coding of a cached body that the client accepts. */
const acceptedCoding = (c: Context, { plain, packed }: CachedBody) =>
  plain.length >= GZIP_MIN_BYTES && acceptsGzip(header(c, 'accept-encoding')) ? packed : plain

/** Memory that an answer of `sendCached` holds: a slow reader gets a copy of its own. */
export const cachedBytes = (c: Context, cached: CachedBody): number =>
  c.req.method === 'HEAD' ? 0 : acceptedCoding(c, cached).length

/** 200 with a cached body. */
export function sendCached(c: Context, cached: CachedBody, extra: Record<string, string> = {}): Response {
  const body = acceptedCoding(c, cached)
  return sendBody(c, body, { ...extra, ...(body === cached.packed ? PACKED : VARY), etag: cached.tag })
}

/** 304 where the client has the cached body already; else the next handler. */
export const notModified =
  (read: (c: Context) => Promise<CachedBody>): MiddlewareHandler<Env> =>
  async (c, next) => {
    const cached = await read(c)
    if (!matchesEtag(cached, header(c, 'if-none-match'))) return next()
    c.set('bytes', 0)
    const { 'content-type': _, ...headers } = headersFor(c, '', { ...VARY, etag: cached.tag })
    return new Response(null, { status: 304, headers })
  }

/** 200 with a text and its `ETag`, or 304 where the client has it already. */
export async function sendTagged(
  c: Context,
  { text, headers }: { readonly text: string; readonly headers: Record<string, string> },
): Promise<Response> {
  const cached = await cacheBody(Buffer.from(text))
  const unchanged = await notModified(async () => cached)(c, async () => {})
  return unchanged ?? sendCached(c, cached, headers)
}

const VARY = { vary: 'accept-encoding' }
const PACKED = { ...VARY, 'content-encoding': 'gzip' }

/**
 * 200 with JSON in pieces, each requested when the one before was sent. Compressed when accepted; `extra` as for
 * `sendJson`.
 */
export function sendPieces(c: Context, pieces: Pieces, extra?: Record<string, string>): Response {
  const isPacked = acceptsGzip(header(c, 'accept-encoding'))
  const stream = sliced(isPacked ? packed(pieces) : pieces, c.get('share'))
  return new Response(stream, {
    status: 200,
    headers: headersFor(c, 'application/json', { ...(isPacked ? PACKED : VARY), ...extra }),
  })
}

/** 200 with pieces that are sent as they come, uncompressed: a coding would hold back lines that follow slowly. */
export const sendLive = (c: Context, pieces: Pieces, contentType: string): Response =>
  new Response(sliced(pieces, c.get('share')), {
    status: 200,
    headers: headersFor(c, contentType, { 'cache-control': 'no-store', 'x-accel-buffering': 'no' }),
  })
