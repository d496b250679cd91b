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

/**
 * The columns of a pack in the order in which they are stored. Stored packs are read by it, so a column never moves: a
 * new field of a minute is added at the end, wherever it is in the sample. Packs from before lack it.
 */
const STORED: readonly string[] = [
  ...['id', 'ts', 'cpu_usage_millis_avg', 'cpu_usage_millis_max', 'cpu_usage_millis_last', 'cpu_quota_usec'],
  ...['cpu_period_usec', 'cpu_request_millis', 'cpu_limit_millis', 'cpu_nr_periods', 'cpu_nr_throttled'],
  ...['cpu_throttled_usec', 'cpu_psi_some10_avg', 'cpu_psi_some10_max', 'cpu_psi_full10_avg', 'cpu_psi_full10_max'],
  ...['mem_current_avg', 'mem_current_max', 'mem_current_last', 'mem_working_set_avg', 'mem_working_set_max'],
  ...['mem_working_set_last', 'mem_limit', 'mem_request', 'mem_psi_some10_avg', 'mem_psi_some10_max'],
  ...['mem_psi_full10_avg', 'mem_psi_full10_max', 'mem_events_high', 'mem_events_max', 'mem_oom_kill', 'mem_refault'],
  ...['mem_pgmajfault', 'runq_count', 'runq_p50_us', 'runq_p95_us', 'runq_p99_us', 'runq_max_us', 'runq_overflow'],
  ...['runq_hist', 'parts', 'newest_ts'],
]

const VALUES = columnsOf(minute).map(({ name }) => name)
/** The columns of packed minutes. */
export const MINUTE_COLUMNS: readonly string[] = ['id', 'ts', ...VALUES]
/** The columns of packed rows of five minutes. `parts` and `newest_ts` are those of compute_folded. */
export const FOLDED_COLUMNS: readonly string[] = [...MINUTE_COLUMNS, 'parts', 'newest_ts']

const missing = FOLDED_COLUMNS.filter((column) => !STORED.includes(column))
if (missing.length > 0) throw new Error(`packs do not store ${missing.join(', ')}: add it to the end of the list`)

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

/** Those of `columns`, in the order in which a pack stores them. */
const stored = (columns: readonly string[]) => STORED.filter((column) => columns.includes(column))

/**
 * Compresses the rows of `columns` in about 0.1 ms; the cells are ASCII. A thread of the pool would take twice as long.
 */
export const pack = (cells: Cells, columns: readonly string[]): Buffer =>
  deflateRawSync(Buffer.from(textOfCells(stored(columns).map((name) => cells[columns.indexOf(name)]!)), 'latin1'))

/**
 * Returns the rows of a pack as `columns`; those that it lacks are null.
 * @throws the error of zlib if it is none
 */
export function unpack(data: Buffer, columns: readonly string[]): Cells {
  const cells = cellsOfText(inflateRawSync(data).toString('latin1'))
  const order = stored(columns)
  return columns.map((name) => cells[order.indexOf(name)] ?? cells[0]!.map(() => NULL_CELL))
}
