/** The answers of `GET /flows` (docs/contract.md#flow-queries, docs/contract.md#following-flows). */
import { accepts } from 'hono/accepts'
import { type Context, HttpError, sendJson, sendLive, sendPieces } from '../http/index.ts'
import { filterOf } from './filter-parameters.ts'
import { follow } from './follow.ts'
import { renderItems, renderLines, renderTable, tableHead } from './forms.ts'
import { followedRecord, itemRecord } from './item.ts'
import { FlowList } from './list.ts'
import { type FlowParameters, itemsOfPage, placeAfter, writeAfter } from './parameters.ts'
import { type Range, readRange } from './range.ts'
import { readResume, readTimeLine, startPosition, writeResume } from './resume.ts'
import { flowStream } from './stream.ts'

/** The read budget is charged this for each flow of a page. */
export const ROW_BYTES = 4_096
/** A page ends after this many examined flows, so that it comes in time whatever the filter. */
const MAX_EXAMINED = 1_000_000

const JSON_TYPE = 'application/json'
export const LINES = 'application/x-ndjson'
export const TABLE = 'text/csv'

const formOf = (c: Context) => accepts(c, { header: 'Accept', supports: [JSON_TYPE, LINES, TABLE], default: JSON_TYPE })

/** Whether the answer is one page. */
export const isPage = (c: Context, asked: FlowParameters): boolean => !asked.follow && formOf(c) === JSON_TYPE

export async function answerFlows(c: Context, asked: FlowParameters): Promise<Response> {
  const { db, config } = c.get('deps')
  const range = await readRange(db.read, asked.since, asked.until, config.trafficRetentionDays)
  if (range === null) throw new HttpError(400, 'Query deserialize error: until: expected no time before since')
  return asked.follow ? followFlows(c, asked, range) : listFlows(c, asked, range)
}

async function followFlows(c: Context, { since, resume, fields, ...asked }: FlowParameters, range: Range) {
  const { db, config } = c.get('deps')
  const filter = filterOf(asked)
  const now = await readTimeLine(db.read)
  const start =
    resume === null
      ? startPosition(now, since === null ? null : range.since)
      : readResume(resume, filter, now, config.trafficRetentionDays)
  return sendLive(c, follow(c, filter, followedRecord(fields), start, now, ROW_BYTES), LINES)
}

async function listFlows(c: Context, asked: FlowParameters, range: Range): Promise<Response> {
  const { db } = c.get('deps')
  const { order, limit, fields } = asked
  const { observedSince, observedUntil } = range
  const filter = filterOf(asked)
  const form = formOf(c)
  const now = form === LINES ? await readTimeLine(db.read) : null
  const cut = now === null ? {} : { snapshot: now.snapshot }
  const record = itemRecord(fields)
  const query = { filter, order, ...range, ...cut }
  const list = new FlowList(db.read, query, record, placeAfter(asked))
  const nextAfter = () => (list.after === null ? null : writeAfter(order, list.after))
  const facts = () => ({ nextAfter: nextAfter(), observedSince, observedUntil, unstamped: list.unstamped })

  if (now !== null) {
    // A list up to now goes on, where it is followed, with the flows that were being written meanwhile.
    const start = startPosition(now, asked.since === null ? null : range.since, false)
    const resume = () => (asked.until === null && list.isOver ? writeResume(now.name, filter, now.at, start) : null)
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
}
