/** The rollup of minutes into rows of five minutes (docs/contract.md#compute). */
import { columnsOf } from '../../lib/compute/fields.ts'
import { minute } from '../../lib/compute/minutes.ts'
import { type Cells, FOLDED_COLUMNS, NULL_CELL } from '../../lib/compute/pack.ts'

const BUCKET_MINUTES = 5
const MAX_BIGINT = 2n ** 63n - 1n
/** The range in which sums of values neither underflow nor overflow. */
const [LEAST, MOST] = [1e-300, 1e100]
const [ID, TS] = [0, 1]

/** A minute, or a row of five minutes with as many minutes as `parts`. */
interface Part {
  readonly cells: Cells
  readonly at: number
  readonly isRow: boolean
  readonly parts: number
  readonly newestTs: string
}
type Aggregate = (parts: readonly Part[], column: number, newest: Part) => string

const cellOf = ({ cells, at }: Part, column: number): string => cells[column]![at]!
/** Packs from before a field was added have nulls in its column. */
const withValue = (parts: readonly Part[], column: number) => parts.filter((part) => cellOf(part, column) !== NULL_CELL)
const cellsOf = (parts: readonly Part[], column: number): string[] =>
  withValue(parts, column).map((part) => cellOf(part, column))

const clamped = (value: number) => (value >= MOST ? MOST : value >= LEAST ? value : 0)

/** A double as PostgreSQL prints it. */
function doubleText(value: number): string {
  const size = Math.abs(value)
  if (size === 0 || !Number.isFinite(value) || (size >= 1e-4 && size < 1e15)) return String(value)
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
}

const mean: Aggregate = (parts, column) => {
  let sum = 0
  let minutes = 0
  for (const part of withValue(parts, column)) {
    sum += clamped(Number(cellOf(part, column))) * part.parts
    minutes += part.parts
  }
  return minutes === 0 ? NULL_CELL : doubleText(sum / minutes)
}

/** Rounded half up. */
const meanBytes: Aggregate = (parts, column) => {
  let sum = 0n
  let minutes = 0n
  for (const part of withValue(parts, column)) {
    sum += BigInt(cellOf(part, column)) * BigInt(part.parts)
    minutes += BigInt(part.parts)
  }
  return minutes === 0n ? NULL_CELL : String((2n * sum + minutes) / (2n * minutes))
}

const newest: Aggregate = (_parts, column, part) => cellOf(part, column)

/** The text of the largest number; a null counts as none. */
const most: Aggregate = (parts, column) =>
  cellsOf(parts, column).reduce((top, value) => (top === NULL_CELL || isLarger(value, top) ? value : top), NULL_CELL)

const isLarger = (value: string, than: string) => {
  const [one, other] = [Number(value), Number(than)]
  return (
    one > other || Number.isNaN(one) || (one === other && value.length > than.length) || (one === other && value > than)
  )
}

/** A sum of whole numbers, at most the largest bigint. */
function sumOf(values: readonly string[]): string {
  const sum = values.reduce((total, value) => total + Number(value), 0)
  if (Number.isSafeInteger(sum)) return String(sum)
  const exact = values.reduce((total, value) => total + BigInt(value), 0n)
  return String(exact > MAX_BIGINT ? MAX_BIGINT : exact)
}

/** Null only where all are. */
const total: Aggregate = (parts, column) => {
  const values = cellsOf(parts, column)
  return values.length === 0 ? NULL_CELL : sumOf(values)
}

const histogram: Aggregate = (parts, column) => {
  const histograms = cellsOf(parts, column).map((json) => json.slice(1, -1).split(','))
  if (histograms.length === 0) return NULL_CELL
  const size = Math.max(...histograms.map((one) => one.length))
  const sums = Array.from({ length: size }, (_, bucket) =>
    sumOf(histograms.map((one) => one[bucket] ?? '0').map((value) => (value === 'null' ? '0' : value))),
  )
  return `[${sums.join(',')}]`
}

const SETTINGS = new Set([
  ...['cpu_quota_usec', 'cpu_period_usec', 'cpu_request_millis', 'cpu_limit_millis', 'mem_limit', 'mem_request'],
])
const QUANTILES = new Set(['runq_p50_us', 'runq_p95_us', 'runq_p99_us', 'runq_max_us'])
const COLUMNS = columnsOf(minute)

/**
 * Gauges become the mean of means, the maximum of maxima and the last value by time; settings are those of the newest
 * minute; counters are summed, quantiles take the maximum.
 */
function aggregateOf({ name, type }: (typeof COLUMNS)[number]): Aggregate {
  if (name === 'runq_hist') return histogram
  // `mem_events_max` is a counter.
  const isGauge = COLUMNS.some((other) => other.name === name.replace(/_[a-z]+$/, '_avg'))
  if (isGauge && name.endsWith('_avg')) return type === 'float8' ? mean : meanBytes
  if ((isGauge && name.endsWith('_max')) || QUANTILES.has(name)) return most
  return isGauge || SETTINGS.has(name) ? newest : total
}

const AGGREGATES = COLUMNS.map(aggregateOf)
const [PARTS, NEWEST_TS] = [FOLDED_COLUMNS.indexOf('parts'), FOLDED_COLUMNS.indexOf('newest_ts')]

/** The start of its five minutes, of a time as PostgreSQL prints it. */
function bucketOf(ts: string): string {
  const minutes = Number(ts.slice(14, 16))
  return `${ts.slice(0, 14)}${String(minutes - (minutes % BUCKET_MINUTES)).padStart(2, '0')}:00`
}

const isNewer = (one: Part, other: Part) =>
  one.newestTs === other.newestTs
    ? one.isRow === other.isRow
      ? Number(cellOf(one, ID)) > Number(cellOf(other, ID))
      : other.isRow
    : one.newestTs > other.newestTs

/**
 * Rolls up minutes of one hour of a container, together with rows of five minutes. Returns the rows by time. An existing
 * row becomes what a single rollup of all its minutes would give, and keeps its id; a posted row counts as one minute,
 * the newest. A new row has the id of its newest minute.
 */
export function rollUp(minutes: readonly Cells[], rows: readonly Cells[]): Cells {
  const buckets = new Map<string, Part[]>()
  const add = (part: Part) => {
    const bucket = bucketOf(cellOf(part, TS))
    const parts = buckets.get(bucket)
    if (parts === undefined) buckets.set(bucket, [part])
    else parts.push(part)
  }
  for (const cells of minutes)
    for (const [at, newestTs] of cells[TS]!.entries()) add({ cells, at, isRow: false, parts: 1, newestTs })
  for (const cells of rows)
    for (const [at, newestTs] of cells[NEWEST_TS]!.entries())
      add({ cells, at, isRow: true, parts: Number(cells[PARTS]![at]), newestTs })

  const result: Cells = FOLDED_COLUMNS.map(() => [])
  for (const [bucket, parts] of [...buckets].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const last = parts.reduce((top, part) => (isNewer(part, top) ? part : top))
    const minutesOf = parts.reduce((sum, part) => sum + part.parts, 0)
    const values = AGGREGATES.map((aggregate, i) => aggregate(parts, TS + 1 + i, last))
    const id = cellOf(parts.find(({ isRow }) => isRow) ?? last, ID)
    for (const [column, value] of [id, bucket, ...values, String(minutesOf), last.newestTs].entries())
      result[column]!.push(value)
  }
  return result
}
