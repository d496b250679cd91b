import { fixed, type Gate } from '../db/index.ts'
import { COLUMN_LIST, type Rendered, render } from './columns.ts'

const NEWEST_FIRST = 'order by time_stamp desc, uuid desc'

type PageReader = (gate: Gate, ...values: (string | number)[]) => Promise<Rendered>

/** Reads one page of flows as JSON objects joined with commas. `rows` selects them whole, with `$1`, `$2`, … for the values. */
export function pageReader(rows: string): PageReader {
  const page = fixed(`select ${COLUMN_LIST} from (${rows}) t`)
  const readAwkward = awkwardReader(rows)
  return async (gate, ...values) => {
    const [row] = await gate((sql) => page(sql, ...values).raw())
    return render(row!) ?? readAwkward(gate, ...values)
  }
}

/** The same for values that the fast way cannot carry, at three times the cost. */
function awkwardReader(rows: string): PageReader {
  const page = fixed(`
      select count(*)::text, coalesce(string_agg(traffic_record(t)::text, ','), ''),
             (array_agg(t.time_stamp::text))[count(*)], (array_agg(t.uuid))[count(*)]
      from (${rows}) t`)
  return async (gate, ...values) => {
    const [row] = await gate((sql) => page(sql, ...values).raw())
    const [count, json, time, uuid] = row as [Buffer, Buffer, Buffer, Buffer]
    return { json, count: Number(count), last: { time: String(time), uuid: String(uuid) } }
  }
}

/** The newest flows, so many at most. */
export const readNewest = pageReader(`select * from traffic ${NEWEST_FIRST} limit $1`)

const FIRST_PAGES = fixed(`
      select page.*
      from json_array_elements_text($1::text::json) with ordinality k(name, n)
      cross join lateral (
        select ${COLUMN_LIST}
        from (select * from traffic where pod_name = k.name ${NEWEST_FIRST} limit $2) t) page
      order by k.n`)

const readAwkwardFirstPage = awkwardReader(`select * from traffic where pod_name = $1 ${NEWEST_FIRST} limit $2`)

/** The newest flows of each of the pods, `limit` at most, in one statement. */
export async function readFirstPages(gate: Gate, pods: readonly string[], limit: number): Promise<Rendered[]> {
  const rows = await gate((sql) => FIRST_PAGES(sql, JSON.stringify(pods), limit).raw())
  return Promise.all(pods.map((pod, i) => render(rows[i]!) ?? readAwkwardFirstPage(gate, pod, limit)))
}

const readPageAfter = pageReader(`
      select * from traffic
      where pod_name = $1 and (time_stamp, uuid) < ($2::text::timestamp, $3)
      ${NEWEST_FIRST} limit $4`)

/** The flows of a pod that come after the last of a page. */
export const readNextPage = (gate: Gate, pod: string, after: { time: string; uuid: string }, limit: number) =>
  readPageAfter(gate, pod, after.time, after.uuid, limit)

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
