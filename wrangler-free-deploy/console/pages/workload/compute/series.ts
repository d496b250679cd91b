/** Converts minutes of a container to lines of charts. A missing minute is a gap, not a zero. */
import type { JsonAnswer } from '../../../api/answers.ts'
import { bytesText } from '../../../parts/bytes.ts'
import { toMs } from '../../../parts/moment.ts'

export type History = JsonAnswer<'/compute/history/{pod_uid}'>
export type Minute = History['rows'][number]

type Value = number | null

export interface Line {
  readonly label: string
  /** One of the five chart colours; a colour has the same meaning in all charts. */
  readonly look: 'first' | 'second' | 'third' | 'request' | 'limit'
  readonly values: readonly Value[]
}

export interface Chart {
  readonly title: string
  /** The reason shown if all values are null. */
  readonly none: string
  readonly text: (value: number) => string
  /** Whether ticks are powers of two, for bytes. */
  readonly isBytes?: true
  readonly lines: readonly Line[]
}

export interface Charts {
  /** Seconds since 1970, as uPlot expects them. Gaps have times too, with null values. */
  readonly times: readonly number[]
  readonly charts: readonly Chart[]
}

const MS_PER_SECOND = 1_000
const US_PER_MS = 1_000
/** A row that starts later than this many lengths of the previous row leaves a gap. */
const GAP_ROWS = 1.5

export const millisText = (millis: number): string =>
  millis >= 1_000 ? `${(millis / 1_000).toFixed(2)} cores` : `${Math.round(millis)} m`
export const percentText = (percent: number): string =>
  `${percent >= 10 || percent === 0 ? Math.round(percent) : percent.toFixed(1)} %`
export const latencyText = (us: number): string => {
  const ms = us / US_PER_MS
  return ms >= 10 ? `${Math.round(ms)} ms` : ms >= 0.1 ? `${ms.toFixed(1)} ms` : `${Math.round(us)} µs`
}

/** The names of containers that have minutes, sorted. */
export const containersOf = (rows: readonly Minute[]): readonly string[] =>
  [...new Set(rows.map(({ container }) => container))].sort()

/** The rows of one container, with null for gaps. */
export function withGaps(rows: readonly Minute[]): {
  readonly times: readonly number[]
  readonly rows: readonly (Minute | null)[]
} {
  const times: number[] = []
  const found: (Minute | null)[] = []
  let before: { readonly seconds: number; readonly length: number } | null = null
  for (const row of rows) {
    const seconds = toMs(row.ts) / MS_PER_SECOND
    if (before !== null && seconds - before.seconds > before.length * GAP_ROWS) {
      times.push(before.seconds + before.length)
      found.push(null)
    }
    times.push(seconds)
    found.push(row)
    before = { seconds, length: row.resolution_secs }
  }
  return { times, rows: found }
}

/** Null without a CPU limit: then nothing can be throttled. */
const throttledPercent = ({ cpu_nr_periods: periods, cpu_nr_throttled: throttled }: Minute): Value =>
  periods === 0 ? null : (throttled / periods) * 100

export function chartsOf(minutes: readonly Minute[], container: string): Charts {
  const { times, rows } = withGaps(minutes.filter((row) => row.container === container))
  const line = (label: string, look: Line['look'], of: (row: Minute) => Value): Line => ({
    ...{ label, look },
    values: rows.map((row) => (row === null ? null : of(row))),
  })
  return {
    times,
    charts: [
      {
        ...{ title: 'CPU', none: 'No minute has a value.', text: millisText },
        lines: [
          line('mean', 'first', (row) => row.cpu_usage_millis_avg),
          line('highest sample', 'second', (row) => row.cpu_usage_millis_max),
          line('request', 'request', (row) => row.cpu_request_millis),
          line('limit', 'limit', (row) => row.cpu_limit_millis),
        ],
      },
      {
        ...{ title: 'Memory (working set)', none: 'No minute has a value.', text: bytesText, isBytes: true },
        lines: [
          line('mean', 'first', (row) => row.mem_working_set_avg),
          line('largest', 'second', (row) => row.mem_working_set_max),
          line('request', 'request', (row) => row.mem_request),
          line('limit', 'limit', (row) => row.mem_limit),
        ],
      },
      {
        ...{ title: 'Throttled periods', text: percentText },
        none: 'The container has no CPU limit, so it is never throttled.',
        lines: [line('of the periods of the CPU limit', 'first', throttledPercent)],
      },
      {
        ...{ title: 'Pressure (some task waited)', none: 'No minute has a value.', text: percentText },
        lines: [
          line('CPU', 'first', (row) => row.cpu_psi_some10_avg),
          line('memory', 'second', (row) => row.mem_psi_some10_avg),
        ],
      },
      {
        ...{ title: 'Run-queue latency', text: latencyText },
        none: 'The node has no contention probe, so nobody measured it.',
        lines: [
          line('p50', 'first', (row) => row.runq_p50_us),
          line('p95', 'second', (row) => row.runq_p95_us),
          line('p99', 'third', (row) => row.runq_p99_us),
        ],
      },
    ],
  }
}

/** Leaves out lines without any value, such as the limit of a container that has none. */
export const shownLines = ({ lines }: Chart): readonly Line[] =>
  lines.filter(({ values }) => values.some((value) => value !== null))

/** `mean: last 49 m, highest 210 m`: a text alternative for the chart. */
export function summaryOf(chart: Chart): string {
  const lines = shownLines(chart)
  if (lines.length === 0) return chart.none
  return lines
    .map(({ label, values }) => {
      const known = values.filter((value) => value !== null)
      return `${label}: last ${chart.text(known.at(-1)!)}, highest ${chart.text(Math.max(...known))}`
    })
    .join('; ')
}

/** Values between two gaps, which a line alone would not show; they are drawn as points. */
export const lonely = (values: readonly (Value | undefined)[]): readonly number[] =>
  values.flatMap((value, index) =>
    value != null && (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null ? [index] : [],
  )

export interface ChartRow {
  readonly seconds: number
  readonly values: readonly Value[]
}

/** The chart as rows, newest first, without gaps. */
export function rowsOfChart(times: readonly number[], lines: readonly Line[]): readonly ChartRow[] {
  return times
    .map((seconds, index) => ({ seconds, values: lines.map(({ values }) => values[index] ?? null) }))
    .filter(({ values }) => values.some((value) => value !== null))
    .reverse()
}
