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
  follow,
  followedRecord,
  itemRecord,
  itemsOfPage,
  MAX_ITEMS,
  PIECE_ROWS,
  placeAfter,
  readRange,
  readResume,
  readTimeLine,
  renderItems,
  renderLines,
  renderTable,
  startPosition,
  tableHead,
  writeAfter,
  writeResume,
} from '../lib/flows/index.ts'
import {
  access,
  type Context,
  charge,
  HttpError,
  kib,
  query,
  route,
  sendJson,
  sendLive,
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

const formOf = (c: Context) => accepts(c, { header: 'Accept', supports: [JSON_TYPE, LINES, TABLE], default: JSON_TYPE })

/** A page charges its items; a stream charges its pieces one after the other. */
const perPage: Validated<'query', typeof FlowParameters> = charge((c) => {
  const asked = c.req.valid('query')
  const isPage = !asked.follow && formOf(c as unknown as Context) === JSON_TYPE
  return kib((isPage ? itemsOfPage(asked) : PIECE_ROWS) * ROW_BYTES)
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
}).get(
  '/flows',
  access('read'),
  query(FlowParameters, { repeated: Object.keys(filterParameters) }),
  perPage,
  async (c) => {
    const { db, config } = c.get('deps')
    const asked = c.req.valid('query')
    const filter = filterOf(asked)
    const days = config.trafficRetentionDays
    const range = await readRange(db.read, asked.since, asked.until, days)
    if (range === null) throw new HttpError(400, 'Query deserialize error: until: expected no time before since')

    if (asked.follow) {
      const now = await readTimeLine(db.read)
      const start =
        asked.resume === null
          ? startPosition(now, asked.since === null ? null : range.since)
          : readResume(asked.resume, filter, now, days)
      return sendLive(c, follow(c, filter, followedRecord(asked.fields), start, now, ROW_BYTES), LINES)
    }

    const { order, limit, fields } = asked
    const { observedSince, observedUntil } = range
    const form = formOf(c)
    const record = itemRecord(fields)
    const now = form === LINES ? await readTimeLine(db.read) : null
    const cut = now === null ? {} : { snapshot: now.snapshot }
    const list = new FlowList(db.read, { filter, order, ...range, ...cut }, record, placeAfter(asked))
    const nextAfter = () => (list.after === null ? null : writeAfter(order, list.after))
    const facts = () => ({ nextAfter: nextAfter(), observedSince, observedUntil, unstamped: list.unstamped })

    if (now !== null) {
      // A list up to now goes on where it was cut off from the flows that are being written.
      const resume = () =>
        asked.until === null && list.isOver
          ? writeResume(now.name, filter, now.at, startPosition(now, asked.since === null ? null : range.since, false))
          : null
      const tail = () => `${JSON.stringify({ end: true, count: list.count, ...facts(), resume: resume() })}\n`
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
      if (found.length > 0) items.push(...(items.length === 0 ? [] : [Buffer.from(',')]), found)
    } while (!list.isOver && list.count < rows && list.examined < MAX_EXAMINED)
    const tail = JSON.stringify(facts()).slice(1)
    return sendJson(c, Buffer.concat([Buffer.from('{"items":['), ...items, Buffer.from(`],${tail}`)]))
  },
)
