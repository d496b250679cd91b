import { z } from 'zod'
import { HINT_FIELDS, MAX_HINTS, readHints } from '../../lib/flows/index.ts'
import { access, MAX_NAME_CHARS, NO_NULL_PATTERN, query, route, sendJson, text } from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'

const MAX_PREFIX_CHARS = 2 * MAX_NAME_CHARS

const prefix = documentedAs(text.pipe(z.string().max(MAX_PREFIX_CHARS)), {
  type: 'string',
  maxLength: MAX_PREFIX_CHARS,
  pattern: NO_NULL_PATTERN,
})

const Query = z.object({
  field: z.enum(HINT_FIELDS).describe('A filter of `GET /flows`.'),
  prefix: prefix.default('').describe('The beginning of a value.'),
})

const Hints = z.strictObject({ values: z.array(z.string()).max(MAX_HINTS) }).meta({ id: 'FlowHints' })

/** GET /flows/hints: values that complete a filter of flows (docs/contract.md#flow-queries). */
export default route({ summary: 'Complete a value of a filter of flows', answer: Hints }).get(
  '/flows/hints',
  access('read'),
  query(Query),
  async (c) => {
    const { field, prefix } = c.req.valid('query')
    return sendJson(c, JSON.stringify({ values: await readHints(c.get('deps').db.read, field, prefix) }))
  },
)
