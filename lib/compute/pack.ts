/**
 * Packed history: the rows that a container has in an hour, as columns in the text of the database, compressed. Most
 * columns hardly change within an hour, so a minute of half a kilobyte takes some 50 bytes.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { columnsOf } from './fields.ts'
import { minute } from './minutes.ts'

const BETWEEN_COLUMNS = '\n'
const BETWEEN_CELLS = '\x1f'
/** The text of a null. */
export const NULL_CELL = '\x01'

const VALUES = columnsOf(minute).map(({ name }) => name)
/** The columns of packed minutes. */
export const MINUTE_COLUMNS: readonly string[] = ['id', 'ts', ...VALUES]
/** The columns of packed rows of five minutes. `parts` and `newest_ts` are those of compute_folded. */
export const FOLDED_COLUMNS: readonly string[] = [...MINUTE_COLUMNS, 'parts', 'newest_ts']

/** The texts of each column, in the order of the rows. */
export type Cells = string[][]

const textOf = (alias: string, column: string) =>
  column === 'runq_hist' ? `array_to_json(${alias}.${column})::text` : `${alias}.${column}::text`

/** An aggregate of rows `alias`, in their order: the text that `cellsOfText` reads. */
export const packedText = (columns: readonly string[], alias: string): string =>
  `concat_ws(e'\\n', ${columns
    .map((column) => `string_agg(coalesce(${textOf(alias, column)}, e'\\x01'), e'\\x1f')`)
    .join(', ')})`

export const cellsOfText = (text: string): Cells =>
  text.split(BETWEEN_COLUMNS).map((column) => column.split(BETWEEN_CELLS))

const textOfCells = (cells: Cells): string => cells.map((column) => column.join(BETWEEN_CELLS)).join(BETWEEN_COLUMNS)

/** Compresses rows in about 0.1 ms; the cells are ASCII. A thread of the pool would take twice as long. */
export const pack = (cells: Cells): Buffer => deflateRawSync(Buffer.from(textOfCells(cells), 'latin1'))

/** Returns the rows of a pack. @throws the error of zlib if it is none */
export const unpack = (data: Buffer): Cells => cellsOfText(inflateRawSync(data).toString('latin1'))
