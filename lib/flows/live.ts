/** Reads flows in the order in which they were written, so that none is missed (docs/contract.md#following-flows). */
import type { z } from 'zod'
import type { Gate } from '../db/index.ts'
import { joinedColumns, plainColumns, type RawRow } from '../records/index.ts'
import { type FlowFilter, filterSql } from './filter.ts'
import { SIDE_COLUMNS } from './item.ts'
import { FOUND_COLUMNS, unprepared } from './read.ts'
import type { Position } from './resume.ts'

export interface Written {
  /** Flows that pass, in columns joined by `joinedColumns`, which begin at `FOUND_COLUMNS`. */
  readonly row: RawRow
  readonly passed: number
  /** Flows read, whether or not they pass. */
  readonly count: number
  /** Transaction and uuid of the last one. */
  readonly last: { readonly tx: string; readonly uuid: string } | null
}

const SEPARATOR = '|'

/** Reads the next flows of the range of the position, at most `rows`, whether or not they pass. */
export async function readWritten(
  gate: Gate,
  filter: FlowFilter,
  record: z.ZodObject,
  position: Position,
  rows: number,
): Promise<Written> {
  const { flows, values } = compose(filter, position, rows)
  const text = `
    select (count(*) filter (where m.passes))::text, count(*)::text,
           (array_agg(m.tx::text || '${SEPARATOR}' || m.uuid))[count(*)], ${joinedColumns(record, 'm', 'm.passes')}
    from (${flows}) m`
  const [row] = await gate((sql) => unprepared(sql, text, values).raw())
  const [passed, count, place] = row!.slice(0, FOUND_COLUMNS).map((one) => one?.toString())
  const at = place?.indexOf(SEPARATOR) ?? 0
  return {
    row: row!,
    passed: Number(passed),
    count: Number(count),
    last: place === undefined ? null : { tx: place.slice(0, at), uuid: place.slice(at + 1) },
  }
}

/** The same flows that pass row by row. */
export function readWrittenPlain(
  gate: Gate,
  filter: FlowFilter,
  record: z.ZodObject,
  position: Position,
  rows: number,
): Promise<RawRow[]> {
  const { flows, values } = compose(filter, position, rows)
  const text = `select ${plainColumns(record, 'm')} from (${flows}) m where m.passes`
  return gate((sql) => unprepared(sql, text, values).raw())
}

/**
 * A flow that was written again since its first transaction before `base` is an update: its reader has it already. All
 * transactions before `upper` had ended when the range was chosen, so no flow can appear in it later.
 * With ties: flows of several days may share a uuid.
 */
function compose(filter: FlowFilter, { seen, base, upper, tx, uuid, since }: Position, rows: number) {
  const values: (string | number)[] = []
  const parameter = (value: string | number) => `$${values.push(value)}`
  const from = parameter(tx)
  const behind = uuid === null ? 'true' : `(t.tx > ${from}::xid8 or t.uuid > ${parameter(uuid)}::text)`
  const isWanted = since === null ? 'true' : `t.time_stamp >= ${parameter(since)}::text::timestamp`
  const isSeen = (written: string) =>
    seen === null ? 'false' : `pg_visible_in_snapshot(${written}, ${parameter(seen)}::pg_snapshot)`
  const flows = `
    select t.*, (t.first_tx < ${parameter(base)}::xid8 or ${isSeen('t.first_tx')}) is true as "update", ${SIDE_COLUMNS}
    from (select t.*, (${filterSql(filter, parameter)} and ${isWanted} and not ${isSeen('t.tx')}) is true as passes
          from (select t.* from traffic t
                where t.tx >= ${from}::xid8 and t.tx < ${parameter(upper)}::xid8 and ${behind}
                order by t.tx, t.uuid
                fetch first ${parameter(rows)} rows with ties) t
          offset 0) t
    offset 0`
  return { flows, values }
}
