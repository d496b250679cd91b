import { field } from '../entries/index.ts'
import { DIGEST_PATTERN, isDigest } from '../images/index.ts'

/** The digest of an image, or an empty text. */
export const digestOrEmpty = field({ type: 'string', pattern: `^$|${DIGEST_PATTERN}` }, (value) =>
  value === '' || isDigest(value) ? value : undefined,
)
