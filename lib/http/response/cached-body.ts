import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'

const gzipAsync = promisify(gzip)

/** A body in both codings, to be sent many times. */
export interface CachedBody {
  readonly plain: Buffer
  /** As gzip. */
  readonly packed: Buffer
  /** Equal for equal bodies, in either coding and any process (RFC 9110, 8.8.3). */
  readonly tag: string
}

/** Compresses a body once for all requests. */
export async function cacheBody(plain: Buffer): Promise<CachedBody> {
  const packed = await gzipAsync(plain, { level: constants.Z_BEST_SPEED })
  // Equal bytes compress to equal bytes, and there are fewer to hash.
  return { plain, packed, tag: `W/"${createHash('sha256').update(packed).digest('base64url')}"` }
}

/** Whether `If-None-Match` names this tag, weak or strong (RFC 9110, 13.1.2). */
export const matchesEtag = ({ tag }: Pick<CachedBody, 'tag'>, ifNoneMatch: string | undefined): boolean =>
  ifNoneMatch !== undefined && (ifNoneMatch.trim() === '*' || ifNoneMatch.includes(tag.replace(/^W\//, '')))
