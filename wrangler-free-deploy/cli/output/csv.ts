/** Lines of CSV (RFC 4180). A cell that a spreadsheet would take for a formula is text, as in the API. */
import { type Column, fieldOf } from './cell.ts'

const cell = (text: string): string => {
  const plain = /^[=+\-@\t\r]/.test(text) && !isNumber(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}
const isNumber = (text: string): boolean => /^[+-]?\d+(\.\d+)?$/.test(text)

/** `LAST SEEN` is `last_seen`. */
export const headOf = <Row>(columns: readonly Column<Row>[]): string =>
  `${columns.map(({ header, csvHeader = header }) => fieldName(csvHeader)).join(',')}\r\n`
const fieldName = (header: string): string => header.toLowerCase().replace(/[^a-z0-9]+/g, '_')

/** `textOf` changes the text of each field. */
export const lineOf = <Row>(columns: readonly Column<Row>[], row: Row, textOf: (text: string) => string): string =>
  `${columns.map(({ of, isTime = false }) => cell(textOf(fieldOf(of(row), isTime)))).join(',')}\r\n`
