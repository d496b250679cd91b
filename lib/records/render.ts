/** Rows of a declared record as JSON, byte by byte: neither text nor objects are made of them on the way. */
import { parseNaive } from '../net/timestamp.ts'
import { type Column, columnsOf, type Declaration } from './columns.ts'

/** What a driver gives for a row when asked for raw columns: the bytes of the text of each. */
export type RawRow = readonly (Buffer | null)[]

const SEPARATOR = 0x1f
/** No byte. */
const NONE = -1
const NULL_MARK = 0x01
const NULL = Buffer.from('null')
const COMMA = Buffer.from(',')
const QUOTE = 0x22
const BACKSLASH = 0x5c
const HEX = Buffer.from('0123456789abcdef')
/** A control character as `\u001f`. */
const MAX_ESCAPE_BYTES = 6
/** Room for escapes in joined columns; names and addresses need none. */
const SPARE_BYTES = 64 * 1024
/** Quotes, zeros of a fraction, the `Z` of a time, or `null`. */
const MAX_EXTRA_BYTES = 8

export interface JoinedRows {
  /** The records as JSON objects joined with commas, without the brackets of an array. */
  json: Buffer
  /** The same within the brackets, on the same memory. */
  array: Buffer
  count: number
}

interface Layout {
  readonly columns: readonly Column[]
  /** `{"pod_name":`, `,"pod_ip":`, ... */
  readonly heads: readonly Buffer[]
  readonly headsBytes: number
}

const layouts = new WeakMap<Declaration, Layout>()

function layoutOf(record: Declaration): Layout {
  let layout = layouts.get(record)
  if (layout === undefined) {
    const columns = columnsOf(record)
    const heads = columns.map(({ key }, i) => Buffer.from(`${i === 0 ? '{' : ','}"${key}":`))
    layout = { columns, heads, headsBytes: heads.reduce((sum, { length }) => sum + length, 0) }
    layouts.set(record, layout)
  }
  return layout
}

/** The JSON of one row of `plainColumns`; `from` is the place of the first. */
export function plainRow(record: Declaration, row: RawRow, from = 0): Buffer {
  const { columns, heads, headsBytes } = layoutOf(record)
  let room = headsBytes + 1
  for (let c = 0; c < columns.length; c++) {
    const length = row[from + c]?.length ?? 0
    room += (columns[c]!.kind === 'text' ? length * MAX_ESCAPE_BYTES : length) + MAX_EXTRA_BYTES
  }
  const writer = new Writer(room)
  for (let c = 0; c < columns.length; c++) {
    writer.copy(heads[c]!)
    const value = row[from + c]!
    if (value === null) writer.copy(NULL)
    else writer.value(columns[c]!.kind, value, 0, NONE)
  }
  writer.byte(0x7d)
  return writer.out.subarray(0, writer.end)
}

/** The JSON of rows of `plainColumns` joined with commas, without the brackets of an array. */
export function plainRows(record: Declaration, rows: readonly RawRow[], from = 0): Buffer {
  return Buffer.concat(rows.flatMap((row, i) => (i === 0 ? [plainRow(record, row, from)] : [COMMA, plainRow(record, row, from)])))
}

/**
 * The JSON of all rows of one row of `joinedColumns`; `from` is the place of the first of its columns. Null for the rare rows that cannot
 * travel so: a value holds a byte that the columns were joined with, or very many bytes need escaping.
 */
export function joinedRows(record: Declaration, row: RawRow, from = 0): JoinedRows | null {
  const { columns, heads, headsBytes } = layoutOf(record)
  const count = Number(row[from])
  const nulls = Number(row[from + 1])
  if (count === 0) return { json: Buffer.alloc(0), array: Buffer.from('[]'), count }
  const values = row.slice(from + 2, from + 2 + columns.length) as Buffer[]
  const bytes = values.reduce((sum, { length }) => sum + length, 0)
  const writer = new Writer(bytes + SPARE_BYTES + count * (headsBytes + 2 + MAX_EXTRA_BYTES * columns.length))
  const at = new Int32Array(columns.length)
  let nullsSeen = 0
  // The brackets of an array are there in case they are wanted: adding them later would copy megabytes.
  writer.byte(0x5b)
  for (let r = 0; r < count; r++) {
    if (r > 0) writer.byte(0x2c)
    for (let c = 0; c < columns.length; c++) {
      writer.copy(heads[c]!)
      const value = values[c]!
      const start = at[c]!
      if (value[start] === NULL_MARK && (start + 1 === value.length || value[start + 1] === SEPARATOR)) {
        writer.copy(NULL)
        nullsSeen++
        at[c] = start + 2
      } else at[c] = writer.value(columns[c]!.kind, value, start, SEPARATOR) + 1
    }
    writer.byte(0x7d)
  }
  const { out, end } = writer
  // What did not fit was not written: more escapes than there was room for.
  const isWhole = end < out.length && nullsSeen === nulls && values.every((value, c) => at[c] === value.length + 1)
  if (!isWhole) return null
  out[end] = 0x5d
  return { json: out.subarray(1, end), array: out.subarray(0, end + 1), count }
}

/** A row as `row_to_json` gives it, parsed, in the form of its record. */
export function fromRow(record: Declaration, row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const shown = ({ kind, name }: Column) => (kind === 'time' && row[name] !== null ? parseNaive(row[name] as string) : row[name])
  return Object.fromEntries(columnsOf(record).map((column) => [column.key, shown(column)]))
}

/** The last value of a joined column, as text. */
export function lastOf(joined: Buffer): string | null {
  const at = joined.lastIndexOf(SEPARATOR) + 1
  return joined[at] === NULL_MARK && at + 1 === joined.length ? null : joined.toString('utf8', at)
}

/** Writes beyond its room are lost; `end` tells. */
class Writer {
  readonly out: Buffer
  end = 0

  constructor(room: number) {
    this.out = Buffer.allocUnsafe(room)
  }

  byte(byte: number): void {
    this.out[this.end++] = byte
  }

  copy(bytes: Buffer): void {
    const { out } = this
    let { end } = this
    for (let i = 0; i < bytes.length; i++) out[end++] = bytes[i]!
    this.end = end
  }

  /** Writes the value that begins at `from` and ends before the byte `stop`, or with the bytes. Returns where it ended. */
  value(kind: Column['kind'], bytes: Buffer, from: number, stop: number): number {
    if (kind === 'text') return this.#text(bytes, from, stop)
    if (kind === 'time' || kind === 'zonedTime') return this.#time(bytes, from, stop, kind === 'zonedTime')
    return this.#verbatim(bytes, from, stop)
  }

  #text(bytes: Buffer, from: number, stop: number): number {
    const { out } = this
    let { end } = this
    let at = from
    out[end++] = QUOTE
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (byte > QUOTE && byte !== BACKSLASH) out[end++] = byte
      else if (byte === stop) break
      else if (byte === 0x20 || byte === 0x21) out[end++] = byte
      else end = writeEscape(out, end, byte)
    }
    out[end++] = QUOTE
    this.end = end
    return at
  }

  /** `2026-01-01 09:00:00.1` as `"2026-01-01T09:00:00.100"`: the database prints as few fraction digits as it can, the wire has three or six. */
  #time(bytes: Buffer, from: number, stop: number, isZoned: boolean): number {
    const { out } = this
    let { end } = this
    let at = from
    let fraction = 0
    out[end++] = QUOTE
    for (; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (byte === stop) break
      if (byte === 0x2e) fraction = end
      out[end++] = byte === 0x20 ? 0x54 : byte
    }
    if (fraction > 0) for (const want = fraction + (end - fraction > 4 ? 7 : 4); end < want; ) out[end++] = 0x30
    if (isZoned) out[end++] = 0x5a
    out[end++] = QUOTE
    this.end = end
    return at
  }

  #verbatim(bytes: Buffer, from: number, stop: number): number {
    const { out } = this
    let { end } = this
    let at = from
    for (; at < bytes.length && bytes[at] !== stop; at++) out[end++] = bytes[at]!
    this.end = end
    return at
  }
}

/** `\"`, `\\`, or six bytes for a control character (RFC 8259, section 7). */
function writeEscape(out: Buffer, end: number, byte: number): number {
  out[end++] = BACKSLASH
  if (byte === QUOTE || byte === BACKSLASH) {
    out[end++] = byte
    return end
  }
  for (const one of [0x75, 0x30, 0x30, HEX[byte >> 4]!, HEX[byte & 15]!]) out[end++] = one
  return end
}
