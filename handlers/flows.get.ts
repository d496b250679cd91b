import { z } from 'zod'
import {
  answerFlows,
  FlowLine,
  FlowPage,
  FlowParameters,
  filterParameters,
  isPage,
  itemsOfPage,
  LINES,
  MAX_ITEMS,
  PIECE_ROWS,
  ROW_BYTES,
  TABLE,
} from '../lib/flows/index.ts'
import { access, type Context, charge, kib, query, route, type Validated } from '../lib/http/index.ts'

/** A page charges its items; a stream charges its pieces one after the other. */
const perPage: Validated<'query', typeof FlowParameters> = charge((c) => {
  const asked = c.req.valid('query')
  return kib((isPage(c as unknown as Context, asked) ? itemsOfPage(asked) : PIECE_ROWS) * ROW_BYTES)
})

/**
 * GET /flows: the flows that match a filter, as a page of JSON, as lines of JSON, or as a table; with `follow` as lines
 * that go on with each new flow (docs/contract.md#flow-queries, docs/contract.md#following-flows). A stream that cannot
 * be read to its end is cut, so that it never looks whole.
 */
export default route({
  summary: 'Search and follow flows',
  description:
    `\`Accept\` decides: a page of at most ${MAX_ITEMS} flows, or with \`${LINES}\` or \`${TABLE}\` all of them. ` +
    `With \`follow=true\` the answer is \`${LINES}\`, whatever \`Accept\` says.`,
  answer: [
    FlowPage,
    { contentType: LINES, schema: FlowLine },
    { contentType: TABLE, schema: z.string().describe('A table with a head (RFC 4180).') },
  ],
  also: { 410: 'The token of `resume` is of another database, or older than what is kept: begin anew with `since`' },
}).get('/flows', access('read'), query(FlowParameters, { repeated: Object.keys(filterParameters) }), perPage, (c) =>
  answerFlows(c, c.req.valid('query')),
)
