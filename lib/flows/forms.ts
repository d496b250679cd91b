/** The forms of a list of flows: JSON, lines of JSON, and a table (RFC 4180). */
import type { z } from 'zod'
import { chosenValues, columnsOf, sourcesOf } from '../records/columns.ts'
import type { RawRow } from '../records/index.ts'
import { joinedRows, plainRow } from '../records/render.ts'
import { fromPostgres } from '../time/timestamp.ts'
import { FOUND_COLUMNS, type Found } from './read.ts'

const COMMA = 0x2c
const LINE_FEED = 0x0a
const SEPARATOR = '\x1f'
const NULL_MARK = '\x01'
/** Spreadsheets take a cell that begins so for a formula. */
const FORMULA = /^[=+\-@\t\r]/
const NEEDS_QUOTES = /[",\r\n]/

/** Flows in columns joined by `joinedColumns`, which begin at `FOUND_COLUMNS`, and their number. */
type Rows = Pick<Found, 'row' | 'passed'>

/** Renders flows that were found. `plain` reads them row by row where joined columns cannot carry their values. */
export type Render = (record: z.ZodObject, found: Rows, plain: () => Promise<RawRow[]>) => Promise<Buffer>

const inJson =
  (between: number): Render =>
  async (record, found, plain) => {
    if (found.passed === 0) return Buffer.alloc(0)
    const joined = joinedRows(record, found.row, FOUND_COLUMNS, between)
    if (joined !== null) return joined.json
    const separator = Buffer.of(between)
    return Buffer.concat((await plain()).flatMap((row, i) => [...(i === 0 ? [] : [separator]), plainRow(record, row)]))
  }

/** Objects with commas between them. */
export const renderItems = inJson(COMMA)

const objects = inJson(LINE_FEED)

/** Objects, each with a line feed behind it. */
export const renderLines: Render = async (record, found, plain) => {
  const lines = await objects(record, found, plain)
  return lines.length === 0 ? lines : Buffer.concat([lines, Buffer.of(LINE_FEED)])
}

/** Lines of cells. */
export const renderTable: Render = async (record, found, plain) => {
  if (found.passed === 0) return Buffer.alloc(0)
  const kinds = columnsOf(record).map(({ kind }) => kind)
  const width = sourcesOf(record).length
  const sources = columnsOfJoined(found, width) ?? columnsOfRows(await plain(), width)
  const cells = chosenValues(record, sources, NULL_MARK).map((values, c) =>
    values.map(kinds[c] === 'time' ? timeCell : cell),
  )
  let text = ''
  for (let r = 0; r < found.passed; r++) {
    for (let c = 0; c < cells.length; c++) text += `${c === 0 ? '' : ','}${cells[c]![r]!}`
    text += '\r\n'
  }
  return Buffer.from(text)
}

/** The names of the columns. */
export const tableHead = (record: z.ZodObject): Buffer =>
  Buffer.from(
    `${columnsOf(record)
      .map(({ name }) => name)
      .join(',')}\r\n`,
  )

/** The values of each column that was sent; null if one contains the separator or looks like a null. */
function columnsOfJoined({ row, passed }: Rows, width: number): string[][] | null {
  const columns = row.slice(FOUND_COLUMNS + 2, FOUND_COLUMNS + 2 + width).map((one) => one!.toString().split(SEPARATOR))
  const nulls = columns.reduce((sum, values) => sum + values.filter((one) => one === NULL_MARK).length, 0)
  const isWhole = columns.every(({ length }) => length === passed) && nulls === Number(row[FOUND_COLUMNS + 1])
  return isWhole ? columns : null
}

const columnsOfRows = (rows: readonly RawRow[], width: number): string[][] =>
  Array.from({ length: width }, (_, c) => rows.map((row) => row[c]?.toString() ?? NULL_MARK))

const timeCell = (value: string) => (value === NULL_MARK ? '' : fromPostgres(value))

function cell(value: string): string {
  if (value === NULL_MARK) return ''
  const isFormula = FORMULA.test(value)
  if (!isFormula && !NEEDS_QUOTES.test(value)) return value
  return `"${isFormula ? "'" : ''}${value.replaceAll('"', '""')}"`
}
