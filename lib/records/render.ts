/** Renders rows of a declared record as JSON, byte by byte, without strings or objects in between. */
import { parseNaive } from '../time/timestamp.ts'
import { copyPlain, wordsOf, writeWords } from './byte-copy.ts'
import { type Column, type ColumnKind, columnsOf, type RecordSchema, sourcesOf } from './columns.ts'
import type { Page } from './page.ts'

/** A row as the driver returns it for raw columns: the bytes of the text of each column. */
export type RawRow = readonly (Buffer | null)[]

const SEPARATOR = 0x1f
/** Stands for no byte. */
const NONE = -1
const NULL_MARK = 0x01
const NULL = Buffer.from('null')
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const COMMA_BYTES = Buffer.from(',')
const QUOTE = 0x22
const BACKSLASH = 0x5c
const HEX = Buffer.from('0123456789abcdef')
/** Length of a control character as `\u001f`. */
const MAX_ESCAPE_BYTES = 6
/**
 * Most room for escapes in joined columns, which is otherwise as much as the columns themselves take; names and
 * addresses need no escapes.
 */
const MAX_SPARE_BYTES = 64 * 1024
/** Room for each value: quotes, zeros of a fraction, the `Z` of a time, or `null`. */
const MAX_EXTRA_BYTES = 8

interface Layout {
  readonly columns: readonly Column[]
  /** `{"pod_name":`, `,"pod_ip":`, ... */
  readonly heads: readonly Buffer[]
  readonly words: readonly Float64Array[]
  /** The end of a row. */
  readonly close: Buffer
  readonly headsBytes: number
  /** Number of columns that the database sends. */
  readonly width: number
  /** The columns by which others are chosen, with the values that choose one. */
  readonly choosers: readonly Chooser[]
  readonly places: readonly ColumnPlace[]
}

interface Chooser {
  readonly source: number
  readonly keys: readonly Buffer[]
}

/** Where the value of a column is, as numbers of columns that the database sends. */
interface ColumnPlace {
  /** `NONE` if it is chosen. */
  readonly source: number
  /** Number of the chooser, and the source for each of its keys. */
  readonly chooser: number
  readonly sources: readonly number[]
}

const layouts = new WeakMap<RecordSchema, Layout>()

function layoutOf(record: RecordSchema): Layout {
  let layout = layouts.get(record)
  if (layout === undefined) {
    const columns = columnsOf(record)
    const heads = columns.map(({ head }, i) => Buffer.from(i === 0 ? `{${head}` : `${columns[i - 1]!.tail},${head}`))
    layout = {
      columns,
      heads,
      words: heads.map(wordsOf),
      close: Buffer.from(`${columns.at(-1)!.tail}}`),
      headsBytes: heads.reduce((sum, { length }) => sum + length, 0),
      ...placesOf(record),
    }
    layouts.set(record, layout)
  }
  return layout
}

function placesOf(record: RecordSchema): Pick<Layout, 'width' | 'choosers' | 'places'> {
  const names = sourcesOf(record).map(({ name }) => name)
  const choosers = new Map<string, Chooser>()
  const places = columnsOf(record).map(({ name, choice }) => {
    if (choice === null) return { source: names.indexOf(name), chooser: NONE, sources: [] }
    const id = JSON.stringify([choice.by, ...Object.keys(choice.of)])
    if (!choosers.has(id))
      choosers.set(id, {
        source: names.indexOf(choice.by),
        keys: Object.keys(choice.of).map((key) => Buffer.from(key)),
      })
    const sources = Object.values(choice.of).map((other) => names.indexOf(other))
    return { source: NONE, chooser: [...choosers.keys()].indexOf(id), sources }
  })
  return { width: names.length, choosers: [...choosers.values()], places }
}

/** The JSON of one row of `plainColumns`; `from` is the index of its first column. */
export function plainRow(record: RecordSchema, row: RawRow, from = 0): Buffer {
  const layout = layoutOf(record)
  const { columns, heads, close, headsBytes } = layout
  const [values, first] = layout.choosers.length === 0 ? [row, from] : [chosenRow(layout, row, from), 0]
  let room = headsBytes + close.length
  for (let c = 0; c < columns.length; c++) {
    const length = values[first + c]?.length ?? 0
    room += (columns[c]!.kind === 'text' ? length * MAX_ESCAPE_BYTES : length) + MAX_EXTRA_BYTES
  }
  const out = Buffer.allocUnsafe(room)
  let end = 0
  for (let c = 0; c < columns.length; c++) {
    end = copy(out, end, heads[c]!)
    const value = values[first + c]!
    end = value === null ? copy(out, end, NULL) : write(columns[c]!.kind, out, end, value, 0, NONE)
  }
  end = copy(out, end, close)
  return out.subarray(0, end)
}

/** The value of each column in a row of `plainColumns`. */
function chosenRow({ choosers, places }: Layout, row: RawRow, from: number): RawRow {
  const picks = choosers.map(({ source, keys }) => keys.findIndex((key) => row[from + source]?.equals(key)))
  return places.map(({ source, chooser, sources }) => {
    const of = source === NONE ? sources[picks[chooser]!] : source
    return of === undefined ? null : row[from + of]!
  })
}

/** The JSON of rows of `plainColumns` joined with commas, without the brackets of an array. */
export function plainRows(record: RecordSchema, rows: readonly RawRow[], from = 0): Buffer {
  return Buffer.concat(
    rows.flatMap((row, i) => (i === 0 ? [plainRow(record, row, from)] : [COMMA_BYTES, plainRow(record, row, from)])),
  )
}

/**
 * The JSON of all rows in one row of `joinedColumns`; `from` is the index of its first column, and `between` the byte
 * between two rows. Null for the rare rows that the joined form cannot carry: a value contains a separator, or very
 * many bytes need escaping.
 */
export function joinedRows(
  record: RecordSchema,
  row: RawRow,
  from = 0,
  between = COMMA,
): Required<Omit<Page<never>, 'last'>> | null {
  const { columns, heads, words, close, headsBytes, width, choosers, places } = layoutOf(record)
  const count = Number(row[from])
  const nulls = Number(row[from + 1])
  if (count === 0) return { json: Buffer.alloc(0), array: Buffer.from('[]'), count }
  const values = row.slice(from + 2, from + 2 + width) as Buffer[]
  const bytes = places.reduce(
    (sum, { source, sources }) =>
      sum + (source === NONE ? sources.reduce((of, s) => of + values[s]!.length, 0) : values[source]!.length),
    0,
  )
  const out = Buffer.allocUnsafe(
    bytes +
      Math.min(bytes, MAX_SPARE_BYTES) +
      count * (headsBytes + close.length + 1 + MAX_EXTRA_BYTES * columns.length),
  )
  const view = viewOf(out)
  const views = values.map(viewOf)
  const kinds = columns.map(({ kind }) => kind)
  const sourceOf = Int32Array.from(places, ({ source }) => source)
  const hasChosen = choosers.length > 0
  const picks = new Int32Array(choosers.length)
  // Where the value of this row begins in each source. It may be read several times or never where columns are chosen:
  // then `ends` has its end, once it was read.
  const at = new Int32Array(width)
  const ends = new Int32Array(width).fill(NONE)
  let nullsSeen = 0
  // The brackets of an array are always written, because adding them later would copy megabytes.
  let end = 0
  out[end++] = OPEN_ARRAY
  for (let r = 0; r < count; r++) {
    if (r > 0) out[end++] = between
    for (let i = 0; i < picks.length; i++) {
      const { source, keys } = choosers[i]!
      picks[i] = keyAt(values[source]!, at[source]!, keys)
    }
    for (let c = 0; c < kinds.length; c++) {
      if (writeWords(view, end, words[c]!)) end += heads[c]!.length
      else end = copy(out, end, heads[c]!)
      let s = sourceOf[c]!
      if (s === NONE) {
        const { chooser, sources } = places[c]!
        const pick = picks[chooser]!
        if (pick === NONE) {
          end = copy(out, end, NULL)
          continue
        }
        s = sources[pick]!
      }
      const value = values[s]!
      const start = at[s]!
      if (isNullAt(value, start)) {
        end = copy(out, end, NULL)
        stoppedAt = start + 1
        if (!hasChosen) nullsSeen++
      } else {
        if (kinds[c] === 'text') {
          out[end++] = QUOTE
          const plain = copyPlain(view, end, views[s]!, start)
          end = writeRest(out, end + plain, value, start + plain, SEPARATOR)
        } else end = write(kinds[c]!, out, end, value, start, SEPARATOR)
      }
      if (hasChosen) ends[s] = stoppedAt
      else at[s] = stoppedAt + 1
    }
    end = copy(out, end, close)
    for (let s = 0; hasChosen && s < width; s++) {
      const value = values[s]!
      const start = at[s]!
      if (ends[s]! < start) ends[s] = endAt(value, start)
      if (isNullAt(value, start)) nullsSeen++
      at[s] = ends[s]! + 1
    }
  }
  // There were more escapes than room for them, and writes beyond the end were lost.
  const isWhole = end < out.length && nullsSeen === nulls && values.every((value, s) => at[s] === value.length + 1)
  if (!isWhole) return null
  out[end] = CLOSE_ARRAY
  return { json: out.subarray(1, end), array: out.subarray(0, end + 1), count }
}

/** A parsed row of `row_to_json` in the form of its record. */
export function fromRow(record: RecordSchema, row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const valueIn = ({ kind, name }: Column) =>
    kind === 'time' && row[name] !== null ? parseNaive(row[name] as string) : row[name]
  return Object.fromEntries(columnsOf(record).map((column) => [column.key, valueIn(column)]))
}

/** The last value of a joined column, as text. */
export function lastOf(joined: Buffer): string | null {
  const at = joined.lastIndexOf(SEPARATOR) + 1
  return joined[at] === NULL_MARK && at + 1 === joined.length ? null : joined.toString('utf8', at)
}

// These functions take only numbers and bytes: with an object that holds them, lists took half as long again. Bytes
// written beyond the end of `out` are lost; `end` then exceeds its length.

const isNullAt = (bytes: Buffer, at: number) =>
  bytes[at] === NULL_MARK && (at + 1 === bytes.length || bytes[at + 1] === SEPARATOR)

/** The end of the value that begins at `from`. */
function endAt(bytes: Buffer, from: number): number {
  const at = bytes.indexOf(SEPARATOR, from)
  return at === NONE ? bytes.length : at
}

/** The number of the key that the value which begins at `from` equals; `NONE` without one. */
function keyAt(bytes: Buffer, from: number, keys: readonly Buffer[]): number {
  for (let k = 0; k < keys.length; k++) {
    const key = keys[k]!
    const end = from + key.length
    if (end !== bytes.length && bytes[end] !== SEPARATOR) continue
    let i = 0
    while (i < key.length && bytes[from + i] === key[i]) i++
    if (i === key.length) return k
  }
  return NONE
}

const viewOf = ({ buffer, byteOffset, length }: Buffer) => new DataView(buffer, byteOffset, length)

function copy(out: Buffer, end: number, bytes: Buffer): number {
  let to = end
  for (let i = 0; i < bytes.length; i++) out[to++] = bytes[i]!
  return to
}

/** The offset in its bytes at which the last written value ended. */
let stoppedAt = 0

/**
 * Writes the value that begins at `from` and ends before the byte `stop`, or at the end of `bytes`. Returns the new
 * end.
 */
function write(kind: ColumnKind, out: Buffer, end: number, bytes: Buffer, from: number, stop: number): number {
  if (kind === 'text') return writeText(out, end, bytes, from, stop)
  if (kind === 'time' || kind === 'zonedTime') return writeTime(out, end, bytes, from, stop, kind === 'zonedTime')
  return writeVerbatim(out, end, bytes, from, stop)
}

function writeText(out: Buffer, end: number, bytes: Buffer, from: number, stop: number): number {
  out[end] = QUOTE
  return writeRest(out, end + 1, bytes, from, stop)
}

/** Writes the rest of a text and the closing quote. */
function writeRest(out: Buffer, start: number, bytes: Buffer, from: number, stop: number): number {
  let end = start
  let at = from
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte > QUOTE && byte !== BACKSLASH) out[end++] = byte
    else if (byte === stop) break
    else if (byte === 0x20 || byte === 0x21) out[end++] = byte
    else end = writeEscape(out, end, byte)
  }
  out[end++] = QUOTE
  stoppedAt = at
  return end
}

/**
 * Writes `2026-01-01 09:00:00.1` as `"2026-01-01T09:00:00.100"`: the database prints as few fraction digits as
 * possible, the answer has three or six.
 */
function writeTime(out: Buffer, start: number, bytes: Buffer, from: number, stop: number, isZoned: boolean): number {
  let end = start
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
  stoppedAt = at
  return end
}

function writeVerbatim(out: Buffer, start: number, bytes: Buffer, from: number, stop: number): number {
  if (stop === NONE) {
    out.set(bytes, start)
    return start + bytes.length
  }
  let end = start
  let at = from
  for (; at < bytes.length && bytes[at] !== stop; at++) out[end++] = bytes[at]!
  stoppedAt = at
  return end
}

/** Writes `\"`, `\\`, or six bytes for a control character (RFC 8259, section 7). */
function writeEscape(out: Buffer, end: number, byte: number): number {
  out[end++] = BACKSLASH
  if (byte === QUOTE || byte === BACKSLASH) {
    out[end++] = byte
    return end
  }
  for (const one of [0x75, 0x30, 0x30, HEX[byte >> 4]!, HEX[byte & 15]!]) out[end++] = one
  return end
}
