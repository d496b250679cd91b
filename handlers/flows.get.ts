import { accepts } from 'hono/accepts'
import { z } from 'zod'
import {
  FlowLine,
  FlowList,
  FlowPage,
  FlowParameters,
  filterOf,
  filterParameters,
  flowStream,
  itemRecord,
  itemsOfPage,
  MAX_ITEMS,
  placeAfter,
  readRange,
  renderItems,
  renderLines,
  renderTable,
  tableHead,
  tableRecord,
  writeAfter,
} from '../lib/flows/index.ts'
import {
  access,
  charge,
  HttpError,
  kib,
  query,
  route,
  sendJson,
  sendPieces,
  type Validated,
} from '../lib/http/index.ts'

/** The read budget is charged this for each flow of a page. */
const ROW_BYTES = 4_096
/** A page ends after this many examined flows, so that it comes in time whatever the filter. */
const MAX_EXAMINED = 1_000_000

const JSON_TYPE = 'application/json'
const LINES = 'application/x-ndjson'
const TABLE = 'text/csv'

const perItem: Validated<'query', typeof FlowParameters> = charge((c) =>
  kib(itemsOfPage(c.req.valid('query')) * ROW_BYTES),
)

/**
 * GET /flows: the flows that match a filter, as a page of JSON, as lines of JSON, or as a table
 * (docs/contract.md#flow-queries). A stream that cannot be read to its end is cut, so that it never looks whole.
 */
export default route({
  summary: 'Search flows',
  description: `\`Accept\` decides: a page, or with \`${LINES}\` or \`${TABLE}\` all flows. At most ${MAX_ITEMS} in a page.`,
  answer: [
    FlowPage,
    { contentType: LINES, schema: FlowLine },
    { contentType: TABLE, schema: z.string().describe('A table with a head (RFC 4180).') },
  ],
}).get(
  '/flows',
  access('read'),
  query(FlowParameters, { repeated: Object.keys(filterParameters) }),
  perItem,
  async (c) => {
    const { db, config } = c.get('deps')
    const asked = c.req.valid('query')
    const range = await readRange(db.read, asked.since, asked.until, config.trafficRetentionDays)
    if (range === null) throw new HttpError(400, 'Query deserialize error: until: expected a time after since')
    const { order, limit, fields } = asked
    const { observedSince, observedUntil } = range
    const form = accepts(c, { header: 'Accept', supports: [JSON_TYPE, LINES, TABLE], default: JSON_TYPE })
    const record = form === TABLE ? tableRecord(fields) : itemRecord(fields)
    const list = new FlowList(db.read, { filter: filterOf(asked), order, ...range }, record, placeAfter(asked))
    const nextAfter = () => (list.after === null ? null : writeAfter(order, list.after))
    const facts = () => ({ observedSince, observedUntil, unstamped: list.unstamped })

    if (form === LINES) {
      const tail = () => `${JSON.stringify({ end: true, count: list.count, nextAfter: nextAfter(), ...facts() })}\n`
      const read = (rows: number) => list.next(rows, renderLines)
      return sendPieces(c, await flowStream(c, list, { read, tail }, limit, ROW_BYTES), { 'content-type': LINES })
    }
    if (form === TABLE) {
      const read = (rows: number) => list.next(rows, renderTable)
      const pieces = await flowStream(c, list, { read, head: tableHead(record) }, limit, ROW_BYTES)
      return sendPieces(c, pieces, {
        'content-type': `${TABLE}; charset=utf-8; header=present`,
        ...(observedSince === null ? {} : { 'x-kguardian-observed-since': observedSince }),
      })
    }
    const rows = itemsOfPage(asked)
    const items: Buffer[] = []
    do {
      const found = await list.next(rows - list.count, renderItems)
      if (found.length > 0) items.push(items.length === 0 ? found : Buffer.concat([Buffer.from(','), found]))
    } while (!list.isOver && list.count < rows && list.examined < MAX_EXAMINED)
    const tail = JSON.stringify({ nextAfter: nextAfter(), ...facts() }).slice(1)
    return sendJson(c, Buffer.concat([Buffer.from('{"items":['), ...items, Buffer.from(`],${tail}`)]))
  },
)
