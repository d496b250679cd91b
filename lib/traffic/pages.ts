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
