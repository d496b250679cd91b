import { fixed, type Gate } from '../db/index.ts'
import { joinedColumns, joinedPage, listReader, type PageCursor, plainReader } from '../records/index.ts'
import type { Page } from '../records/page.ts'
import { TrafficRow } from './record.ts'

const NEWEST_FIRST = 'order by time_stamp desc, uuid desc'
const PLACE = ['time_stamp', 'uuid']

/** The newest flows, at most `$1`. */
export const readNewest = listReader(TrafficRow, `select * from traffic ${NEWEST_FIRST} limit $1`)

const OF_POD = `select * from traffic where pod_name = $1 ${NEWEST_FIRST} limit $2`

const FIRST_PAGES = fixed(`
      select page.*
      from json_array_elements_text($1::text::json) with ordinality k(name, n)
      cross join lateral (select ${joinedColumns(TrafficRow, 't')} from (${OF_POD.replace('$1', 'k.name')}) t) page
      order by k.n`)

const readPlainFirstPage = plainReader(TrafficRow, OF_POD, PLACE)

/** The newest flows of each pod, at most `limit`, in one statement. */
export async function readFirstPages(gate: Gate, pods: readonly string[], limit: number): Promise<Page<PageCursor>[]> {
  const rows = await gate((sql) => FIRST_PAGES(sql, JSON.stringify(pods), limit).raw())
  return Promise.all(
    pods.map((pod, i) => joinedPage(TrafficRow, rows[i]!, PLACE) ?? readPlainFirstPage(gate, pod, limit)),
  )
}

const readPageAfter = listReader(
  TrafficRow,
  `select * from traffic
   where pod_name = $1 and (time_stamp, uuid) < ($2::text::timestamp, $3)
   ${NEWEST_FIRST} limit $4`,
  PLACE,
)

/** The flows of a pod after the last one of a page. */
export const readNextPage = (gate: Gate, pod: string, after: PageCursor, limit: number) =>
  readPageAfter(gate, pod, ...after, limit)
