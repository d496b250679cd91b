import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'

const gzipAsync = promisify(gzip)

/** A body that is kept in both codings, to be sent many times. */
export interface CachedBody {
  readonly plain: Buffer
  /** As gzip. */
  readonly packed: Buffer
  /** The same for the same body, in whichever coding and process (RFC 9110, 8.8.3). */
  readonly tag: string
}

/** Packs a body once for all who will ask for it. */
export async function cacheBody(plain: Buffer): Promise<CachedBody> {
  const packed = await gzipAsync(plain, { level: constants.Z_BEST_SPEED })
  // The same bytes are packed alike, and there are fewer of them.
  return { plain, packed, tag: `W/"${createHash('sha256').update(packed).digest('base64url')}"` }
}

/** Whether `If-None-Match` says that the client has this body (RFC 9110, 13.1.2). */
export const matchesEtag = ({ tag }: CachedBody, ifNoneMatch: string | undefined): boolean =>
  ifNoneMatch !== undefined && (ifNoneMatch.trim() === '*' || ifNoneMatch.includes(tag.slice('W/'.length)))
