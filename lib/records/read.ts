/** Readers of declared records: each takes SQL that selects whole rows, and returns their JSON as bytes. */
import { createBatcher, type Database, fixed, type Gate, perDatabase } from '../db/index.ts'
import { columnsOf, joinedColumns, plainColumns, type RecordSchema } from './columns.ts'
import type { Page } from './page.ts'
import { joinedRows, lastOf, plainRow, plainRows, type RawRow } from './render.ts'

/**
 * Longer than a look-up takes. With one lane instead of two, 8 clients had up to a quarter more look-ups, for a fifth
 * less processor time.
 */
const PATIENCE_MS = 5

type Value = string | number | boolean | null
/** Columns of the last row of a page as text, null for a SQL null. */
export type PageCursor = readonly (string | null)[]

/**
 * Reads a list of records in one statement. `rows` selects the columns of the record, with `$1`, `$2`, ... for the
 * values, each once and in this order; `place` are the keys of the page cursor.
 */
export function listReader(record: RecordSchema, rows: string, place: readonly string[] = []) {
  const joined = fixed(`select ${joinedColumns(record, 't')} from (${rows}) t`)
  const plain = plainReader(record, rows, place)
  return async (gate: Gate, ...values: Value[]): Promise<Page<PageCursor>> => {
    const [row] = await gate((sql) => joined(sql, ...values).raw())
    return joinedPage(record, row!, place) ?? plain(gate, ...values)
  }
}

/**
 * One row of `joinedColumns` as a page; null if the joined form cannot carry its values, so that `plainReader` has to
 * read them.
 */
export function joinedPage(
  record: RecordSchema,
  row: RawRow,
  place: readonly string[] = [],
  from = 0,
): Page<PageCursor> | null {
  const page = joinedRows(record, row, from)
  if (page === null) return null
  const last = page.count === 0 ? null : indices(record, place).map((c) => lastOf(row[from + 2 + c]!))
  return { ...page, last }
}

/** The same list row by row, for values that joined columns cannot carry; costs a few times as much. */
export function plainReader(record: RecordSchema, rows: string, place: readonly string[] = []) {
  const plain = fixed(`select ${plainColumns(record, 't')} from (${rows}) t`)
  return async (gate: Gate, ...values: Value[]): Promise<Page<PageCursor>> => {
    const found: readonly RawRow[] = await gate((sql) => plain(sql, ...values).raw())
    const last = found.at(-1)
    return {
      json: plainRows(record, found),
      count: found.length,
      last: last ? indices(record, place).map((c) => last[c]?.toString() ?? null) : null,
    }
  }
}

const indices = (record: RecordSchema, place: readonly string[]) =>
  place.map((key) => columnsOf(record).findIndex((column) => column.key === key))

/**
 * A batched look-up by key. `keys` are the types of the parts of a key; `rows` selects the columns of the record for
 * the key `k`, and its first row is used. Resolves to the JSON of the record, or null.
 */
export function batchedLookup<Key extends Record<string, string>>(
  record: RecordSchema,
  keys: { [K in keyof Key]: 'text' | 'timestamp' },
  rows: string,
): (db: Database, key: Key) => Promise<Buffer | null> {
  const parts = Object.entries<string>(keys)
  const names = parts.map(([name]) => name)
  // Reading texts from one JSON array costs PostgreSQL a third of reading records from it; a text in the form of a
  // PostgreSQL array costs three times as much.
  const isText = parts.length === 1 && parts[0]![1] === 'text'
  const source = isText
    ? 'json_array_elements_text($1::text::json)'
    : `rows from (json_to_recordset($1::text::json) as (${parts.map((part) => part.join(' ')).join(', ')}))`
  const statement = fixed(`
    select k.n, ${plainColumns(record, 'r')}
    from ${source} with ordinality k(${names.join(', ')}, n)
    cross join lateral (${rows} limit 1) r`)
  const batcherOf = perDatabase((db) =>
    createBatcher<Key, Buffer | null>({
      patienceMs: PATIENCE_MS,
      run: async (items) => {
        const sent = JSON.stringify(isText ? items.map((item) => item[names[0]!]) : items)
        const found: readonly RawRow[] = await db.read((sql) => statement(sql, sent).raw())
        const records = Array<Buffer | null>(items.length).fill(null)
        for (const row of found) records[Number(row[0]) - 1] = plainRow(record, row, 1)
        return records
      },
    }),
  )
  return (db, key) => batcherOf(db)(key)
}
