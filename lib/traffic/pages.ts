import type { Gate, Sql } from '../db/index.ts'
import { columns, type Rendered, render } from './columns.ts'

/** Rows of traffic newest first, as a subquery of alias `t`. */
export type Page = (sql: Sql) => ReturnType<Sql>

/** One page of flows as JSON objects joined with commas. */
export async function readPage(gate: Gate, page: Page): Promise<Rendered> {
  const [row] = await gate((sql) => sql`select ${columns(sql)} from (${page(sql)}) t`.raw())
  const rendered = render(row as unknown as (Buffer | null)[])
  return rendered ?? readAwkwardPage(gate, page)
}

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
export const asArray = ({ json }: Rendered) => Buffer.concat([OPEN, json, CLOSE], json.length + 2)

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
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          page ??= null
          if (opened) page = await next(page!.last!)
          if (page!.count === 0) {
            controller.enqueue(CLOSE)
            controller.close()
            return
          }
          controller.enqueue(Buffer.concat([opened ? COMMA : OPEN, page!.json]))
          opened = true
        } catch (error) {
          onError(error as Error)
          controller.error(error)
        }
      },
    },
    { highWaterMark: 0 },
  )
}
