import { z } from 'zod'
import { orFirstPage } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'

const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/

/** The same pattern for JSON schemas. */
export const DIGEST_PATTERN = DIGEST.source

/** Whether a value is an image digest: `sha256:` or `sha512:` and lower-case hexadecimal digits. */
export const isDigest = (text: unknown): text is string => typeof text === 'string' && DIGEST.test(text)

export const DIGEST_RULE = 'expected sha256: and 64 or sha512: and 128 lower-case hexadecimal digits'

/** A digest in answers. */
export const digestText = z
  .string()
  .regex(DIGEST)
  .meta({ id: 'Digest', description: 'sha256 with 64 or sha512 with 128 hexadecimal digits.' })

/** A digest in a path or a query. */
export const digest = documentedAs(z.string().refine(isDigest, DIGEST_RULE), {
  type: 'string',
  pattern: DIGEST_PATTERN,
  description: DIGEST_RULE,
})

/** The query parameter `after` of lists that are ordered by digest; empty on the first page. */
export const afterDigest = documentedAs(orFirstPage(digest, ''), {
  type: 'string',
  pattern: `^\\s*$|${DIGEST_PATTERN}`,
  description: 'The last digest of the previous page; blank is the first page.',
})
