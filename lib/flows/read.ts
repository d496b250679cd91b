/**
 * Reads flows in the order of time. A statement examines a bounded number of flows, so that it is short whatever the
 * filter; a reader goes on until it has enough of them (docs/contract.md#flow-queries).
 */
import type { z } from 'zod'
import type { Gate, Sql } from '../db/index.ts'
import { joinedColumns, plainColumns, type RawRow } from '../records/index.ts'
import { type FlowFilter, filterSql } from './filter.ts'
import { SIDE_COLUMNS } from './item.ts'

/** The place of a flow in the order of time. */
export interface Place {
  /** The text that PostgreSQL gives. */
  readonly time: string
  readonly uuid: string
}

export interface FlowQuery {
  readonly filter: FlowFilter
  readonly order: 'newest' | 'oldest'
  /** Included, and excluded, as texts of PostgreSQL. */
  readonly since: string
  readonly until: string
  /** Text of a pg_snapshot: only flows that it has, by the transactions that inserted them. */
  readonly snapshot?: string
  /** Reads only flows that these pods reported. */
  readonly pods?: readonly string[]
}

/** The bounds of one statement. */
export interface Bounds {
  /** Flows behind this one; null from the start. */
  readonly after: Place | null
  /** Rows found at most, and flows examined at most: of each pod where flows are read by pods. */
  readonly rows: number
  readonly examined: number
}

/** The result of one statement. */
export interface Found {
  /** The flows that pass, in columns joined by `joinedColumns`, which begin at `FOUND_COLUMNS`. */
  readonly row: RawRow
  readonly passed: number
  /** Flows of which the broker cannot say whether they pass. */
  readonly unstamped: number
  /** Where to go on; null at the end of the range. */
  readonly last: Place | null
}

export const FOUND_COLUMNS = 3

const SEPARATOR = '|'
const ORDERS = { newest: 'order by t.time_stamp desc, t.uuid desc', oldest: 'order by t.time_stamp, t.uuid' }
const placeOf = (alias: string) => `${alias}.time_stamp || '${SEPARATOR}' || ${alias}.uuid`

/** Reads the next flows, with the columns of the record. */
export async function readFlows(gate: Gate, query: FlowQuery, record: z.ZodObject, bounds: Bounds): Promise<Found> {
  const { flows, lastExamined, values, parameter } = compose(query, bounds)
  const rows = parameter(bounds.rows)
  const text = `
    select (count(*) filter (where m.passes))::text, (count(*) filter (where m.passes is null))::text,
           -- the last row found; else the last one examined; else null at the end
           case when count(*) = ${rows} then (array_agg(${placeOf('m')}))[${rows}]
                else (select ${placeOf('t')} from (${lastExamined}) t) end,
           ${joinedColumns(record, 'm', 'm.passes')}
    from (${flows}) m`
  const [row] = await gate((sql) => unprepared(sql, text, values).raw())
  const [passed, unstamped, place] = row!.slice(0, FOUND_COLUMNS).map((one) => one?.toString())
  const at = place?.indexOf(SEPARATOR) ?? 0
  return {
    row: row!,
    passed: Number(passed),
    unstamped: Number(unstamped),
    last: place === undefined ? null : { time: place.slice(0, at), uuid: place.slice(at + 1) },
  }
}

/** The flows that pass, of the same bounds, row by row: for values that joined columns cannot carry. */
export function readFlowsPlain(gate: Gate, query: FlowQuery, record: z.ZodObject, bounds: Bounds): Promise<RawRow[]> {
  const { flows, values } = compose(query, bounds)
  const text = `select ${plainColumns(record, 'm')} from (${flows}) m where m.passes`
  return gate((sql) => unprepared(sql, text, values).raw())
}

/** There are too many filters to keep their statements prepared in each connection. */
export const unprepared = (sql: Sql, text: string, values: (string | number)[]) =>
  sql.unsafe(text, values, { prepare: false })

/**
 * Whether a flow `t` was inserted by a transaction of a snapshot. A flow that names no transaction was inserted before,
 * and so was one that names a transaction of the future: it was restored from another server.
 */
export const isInsertedBy = (snapshot: string) => `(
  coalesce(pg_visible_in_snapshot(coalesce(t.first_tx, t.tx), ${snapshot}::pg_snapshot), true)
  or coalesce(t.first_tx, t.tx) >= (select pg_snapshot_xmax(pg_current_snapshot())))`

/** Whether a flow `t` that was inserted by a transaction of a snapshot was written again by a later one. */
export const isWrittenAfter = (snapshot: string) =>
  `(t.first_tx is not null and not pg_visible_in_snapshot(t.tx, ${snapshot}::pg_snapshot))`

/** The flows within the bounds that pass or may pass, and where the statement stops, if before the end of the range. */
function compose({ filter, order, since, until, snapshot, pods }: FlowQuery, { after, rows, examined }: Bounds) {
  const values: (string | number)[] = []
  const parameter = (value: string | number) => `$${values.push(value)}`
  const isNewest = order === 'newest'
  const [start, end] = isNewest ? [until, since] : [since, until]
  const isBehind = isNewest ? '<' : after === null ? '>=' : '>'
  const time = `${parameter(after?.time ?? start)}::text::timestamp`
  const range = `
    (t.time_stamp, t.uuid) ${isBehind} (${time}, ${parameter(after?.uuid ?? '')}::text)
    and t.time_stamp ${isNewest ? '>=' : '<'} ${parameter(end)}::text::timestamp`
  const isInserted = snapshot === undefined ? 'true' : isInsertedBy(parameter(snapshot))
  const { read, lastExamined } =
    pods === undefined
      ? inOrder(range, order, parameter(examined))
      : byPod(range, order, parameter(JSON.stringify(pods)), parameter(examined))
  // `offset 0`: the filter and the sides are computed once for each flow. The limits keep the order of the index.
  const flows = `
    select t.*, false as "update", ${SIDE_COLUMNS}
    from (select m.*
          from (select t.*, (${filterSql(filter, parameter)} and ${isInserted}) as passes
                from (${read}) t
                offset 0) m
          where m.passes is not false
          ${pods === undefined ? '' : ORDERS[order].replaceAll('t.', 'm.')}
          limit ${parameter(rows)}) t
    offset 0`
  return { flows, lastExamined, values, parameter }
}

type Order = FlowQuery['order']

/** The next flows of the range. */
const inOrder = (range: string, order: Order, examined: string) => ({
  read: `select t.* from traffic t where ${range} ${ORDERS[order]} limit ${examined}`,
  lastExamined: `
    select t.time_stamp, t.uuid from traffic t where ${range} ${ORDERS[order]} offset ${examined}::int - 1 limit 1`,
})

/** The next flows of each pod, up to the first place where one of them has more. */
function byPod(range: string, order: Order, pods: string, examined: string) {
  const each = (rest: string) => `
    json_array_elements_text(${pods}::text::json) p(pod_name)
    cross join lateral (select t.* from traffic t where t.pod_name = p.pod_name and ${range} ${rest}) t`
  const lastExamined = `
    select t.time_stamp, t.uuid from ${each(`${ORDERS[order]} offset ${examined}::int - 1 limit 1`)}
    ${ORDERS[order]} limit 1`
  const [comparison, end] = order === 'newest' ? ['>=', '-infinity'] : ['<=', 'infinity']
  const read = `
    select t.*
    from (select coalesce(max(t.time_stamp), '${end}') as time_stamp, coalesce(max(t.uuid), '') as uuid
          from (${lastExamined}) t) l
    cross join ${each(`and (t.time_stamp, t.uuid) ${comparison} (l.time_stamp, l.uuid) offset 0`)}`
  return { read, lastExamined }
}
