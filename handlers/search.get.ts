import { z } from 'zod'
import { access, charge, clamped, kib, query, route, sendJson } from '../lib/http/index.ts'
import { documentedAs } from '../lib/openapi/declare.ts'
import { Hit, looked, readHits, readQuestion, TYPES } from '../lib/search/index.ts'
import { isLongerThan } from '../lib/text/utf8.ts'

const DEFAULT_HITS = 10
const MAX_HITS = 50
/** No stored name is as long, and no reference of an image. */
const MAX_QUERY_BYTES = 2_048
/** The read budget is charged this: 200 names of each type, most with less than 500 bytes. */
const MAX_BYTES = 1_024 * 1_024

const Query = z.object({
  q: documentedAs(
    z
      .string()
      .refine((text) => !text.includes('\0'), 'U+0000 is not allowed')
      .refine((text) => text.isWellFormed(), 'half a surrogate pair is not allowed')
      .refine((text) => !isLongerThan(text, MAX_QUERY_BYTES), `expected at most ${MAX_QUERY_BYTES} bytes`)
      .transform((text) => text.trim())
      .refine((text) => text !== '', 'expected a text that is not blank'),
    {
      type: 'string',
      pattern: `^[ -~]{0,${MAX_QUERY_BYTES - 1}}[!-~]$`,
      description:
        'The id of a vulnerability, a package or its URL, a digest or its beginning, a repository or its end, the name ' +
        `of a workload, pod, service, namespace or node, or an address; at most ${MAX_QUERY_BYTES} bytes.`,
    },
  ),
  limit: clamped(DEFAULT_HITS, MAX_HITS, 'Hits of each type at most'),
})

const Answer = z
  .strictObject({
    query: z.string().describe('Without the blanks around it.'),
    hits: z.array(Hit).describe('Those that run first, then the closest match.'),
    truncated: z.array(z.enum(TYPES as [string, ...string[]])).describe('The types that have more hits.'),
    ...looked,
  })
  .meta({ id: 'SearchAnswer' })

/** GET /search: what a text may stand for (docs/contract.md#search). */
export default route({ summary: 'Find anything by one text', answer: Answer }).get(
  '/search',
  access('read'),
  query(Query),
  charge(kib(MAX_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const { q, limit } = c.req.valid('query')
    const found = await readHits(db.read, readQuestion(q), limit, config.imageRunningWindowSecs)
    return sendJson(c, JSON.stringify({ query: q, ...found }))
  },
)
