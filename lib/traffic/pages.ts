import type postgres from 'postgres'
import type { Gate, Sql } from '../db/index.ts'
import { columns, type Rendered, render } from './columns.ts'

/** Rows of traffic newest first, as a subquery of alias `t`. */
export type Page = (sql: Sql) => postgres.PendingQuery<postgres.Row[]>

/** One page of flows as JSON objects joined with commas. */
export async function readPage(gate: Gate, page: Page): Promise<Rendered> {
  const [row] = await gate((sql) => sql`select ${columns(sql)} from (${page(sql)}) t`.raw())
  const rendered = render(row as unknown as (Buffer | null)[])
  return rendered ?? readAwkwardPage(gate, page)
}

/** The newest flows of each of the pods, `limit` at most, in one statement. */
export async function readFirstPages(gate: Gate, pods: readonly string[], limit: number): Promise<Rendered[]> {
  const rows = await gate((sql) =>
    sql`
      select page.*
      from json_array_elements_text(${JSON.stringify(pods)}::text::json) with ordinality k(name, n)
      cross join lateral (
        select ${columns(sql)}
        from (select * from traffic where pod_name = k.name order by time_stamp desc, uuid desc limit ${limit}) t) page
      order by k.n`.raw(),
  )
  return Promise.all(
    pods.map((pod, i) => render(rows[i] as unknown as (Buffer | null)[]) ?? readAwkwardPage(gate, (sql) => newestOf(sql, pod, limit))),
  )
}

const newestOf = (sql: Sql, pod: string, limit: number) =>
  sql`select * from traffic where pod_name = ${pod} order by time_stamp desc, uuid desc limit ${limit}`

/** The flows of a pod that come after the last of a page. */
export const readNextPage = (gate: Gate, pod: string, after: { time: string; uuid: string }, limit: number) =>
  readPage(
    gate,
    (sql) => sql`
      select * from traffic
      where pod_name = ${pod} and (time_stamp, uuid) < (${after.time}::text::timestamp, ${after.uuid})
      order by time_stamp desc, uuid desc limit ${limit}`,
  )

/** The same for values that the fast way cannot carry, at three times the cost. */
async function readAwkwardPage(gate: Gate, page: Page): Promise<Rendered> {
  const [row] = await gate((sql) =>
    sql`
      select count(*)::text, coalesce(string_agg(traffic_record(t)::text, ','), ''),
             (array_agg(t.time_stamp::text))[count(*)], (array_agg(t.uuid))[count(*)]
      from (${page(sql)}) t`.raw(),
  )
  const [count, json, time, uuid] = row as unknown as [Buffer, Buffer, Buffer, Buffer]
  return { json, count: Number(count), last: { time: String(time), uuid: String(uuid) } }
}

const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

/** The array of one page. */
export const asArray = ({ json, array }: Rendered) => array ?? Buffer.concat([OPEN, json, CLOSE], json.length + 2)

/**
 * An array of unknown length in bounded memory: the first page at once, each other when the reader has taken the one before.
 * Pages are keyset, so a slow reader holds no connection and no snapshot, and every row that was there at the start is sent once.
 * `onError` must cut the connection: a list that ends early must not look whole.
 */
export function streamPages(
  first: Rendered,
  next: (after: NonNullable<Rendered['last']>) => Promise<Rendered>,
  onError: (error: Error) => void,
): ReadableStream<Uint8Array> {
  let page: Rendered | null = first
  let opened = false
  let isGone = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (opened) page = await next(page!.last!)
          if (isGone) return
          if (page!.count === 0) {
            controller.enqueue(CLOSE)
            controller.close()
            return
          }
          controller.enqueue(Buffer.concat([opened ? COMMA : OPEN, page!.json]))
          opened = true
        } catch (error) {
          if (isGone) return
          onError(error as Error)
          controller.error(error)
        }
      },
      cancel() {
        isGone = true
      },
    },
    { highWaterMark: 0 },
  )
}
