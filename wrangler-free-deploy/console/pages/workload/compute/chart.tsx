/** A chart over time, with a legend that follows the cursor, and the same data as a table. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { type Column, Table } from '../../../parts/table.tsx'
import { localText } from '../../../parts/time.tsx'
import { type Palette, usePalette } from './palette.ts'
import { type Chart, type ChartRow, type Line, lonely, rowsOfChart, shownLines, summaryOf } from './series.ts'

const HEIGHT_PX = 180
const MS_PER_SECOND = 1_000
const AXIS_PX = 72
const TIME_AXIS_PX = 32
const MIN_WIDTH_PX = 200
const MAX_BYTES_LOG2 = 50
const BYTE_STEPS = Array.from({ length: MAX_BYTES_LOG2 }, (_, log2) => 2 ** log2)

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

/** Charts with the same key move their cursors together. */
const SYNC_KEY = 'compute'

export interface ChartFigureProps {
  readonly chart: Chart
  readonly times: readonly number[]
  /** The container that the values belong to. */
  readonly about: string
  readonly spanSeconds: number
}

export function ChartFigure({ chart, times, about, spanSeconds }: ChartFigureProps) {
  const lines = useMemo(() => shownLines(chart), [chart])
  const [at, setAt] = useState<number | null>(null)
  return (
    <figure class="chart">
      <figcaption>
        <h3>{chart.title}</h3>
        {lines.length > 0 && (
          <span class="faint">
            {at === null ? 'newest minute' : localText(new Date((times[at] ?? 0) * MS_PER_SECOND).toISOString())}
          </span>
        )}
      </figcaption>
      {lines.length === 0 ? (
        <p class="faint">{chart.none}</p>
      ) : (
        <>
          <Legend chart={chart} lines={lines} at={at} />
          <Canvas chart={chart} lines={lines} times={times} onCursor={setAt} about={about} spanSeconds={spanSeconds} />
          <details>
            <summary>{chart.title} as a table</summary>
            <ChartTable chart={chart} lines={lines} times={times} about={about} />
          </details>
        </>
      )}
    </figure>
  )
}

interface Drawn {
  readonly chart: Chart
  readonly lines: readonly Line[]
  readonly times: readonly number[]
}

/** The values at the cursor, or the newest ones. */
function Legend({ chart, lines, at }: Omit<Drawn, 'times'> & { at: number | null }) {
  return (
    <ul class="chart-legend">
      {lines.map(({ label, look, values }) => {
        const value = at === null ? values.findLast((one) => one !== null) : values[at]
        return (
          <li key={label}>
            <span class={`chart-key ${look}`} aria-hidden="true" />
            {label} <strong class="number">{value == null ? 'none' : chart.text(value)}</strong>
          </li>
        )
      })}
    </ul>
  )
}

function Canvas({
  chart,
  lines,
  times,
  onCursor,
  about,
  spanSeconds,
}: Drawn & { onCursor: (at: number | null) => void; about: string; spanSeconds: number }) {
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const palette = usePalette(frame)
  const shape = lines.map(({ label }) => label).join()
  const data = [[...times], ...lines.map(({ values }) => [...values])] as uPlot.AlignedData
  useEffect(() => {
    const element = frame.current
    if (element === null || palette === null) return
    const made = new uPlot(optionsOf(chart, lines, palette, element.clientWidth, spanSeconds, onCursor), data, element)
    plot.current = made
    const resize = new ResizeObserver(() =>
      made.setSize({ width: Math.max(element.clientWidth, MIN_WIDTH_PX), height: HEIGHT_PX }),
    )
    resize.observe(element)
    return () => {
      resize.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [palette, shape, chart.title, spanSeconds])
  // New data moves the lines without building the chart again, so the cursor stays.
  useEffect(() => plot.current?.setData(data), [times, lines])
  return (
    <div class="chart-canvas" ref={frame} role="img" aria-label={`${chart.title} of ${about}. ${summaryOf(chart)}`} />
  )
}

function optionsOf(
  { text, isBytes }: Chart,
  lines: readonly Line[],
  palette: Palette,
  width: number,
  spanSeconds: number,
  onCursor: (at: number | null) => void,
): uPlot.Options {
  const axis = {
    stroke: palette.faint,
    grid: { stroke: palette.line, width: 1 },
    ticks: { show: false },
    font: palette.font,
  }
  return {
    width: Math.max(width, MIN_WIDTH_PX),
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { sync: { key: SYNC_KEY }, drag: { x: false, y: false }, y: false },
    scales: {
      // The whole time span until now, even if nothing was posted for a part of it.
      x: {
        range: (_, __, newest) => {
          const end = Math.max(newest, Date.now() / MS_PER_SECOND)
          return [end - spanSeconds, end]
        },
      },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: TIME_AXIS_PX, values: (_, ticks) => ticks.map((tick) => clock.format(tick * MS_PER_SECOND)) },
      {
        ...{ ...axis, size: AXIS_PX, values: (_, ticks) => ticks.map((tick) => text(tick)) },
        ...(isBytes && { incrs: BYTE_STEPS }),
      },
    ],
    series: [
      {},
      ...lines.map(
        ({ label, look }): uPlot.Series => ({
          ...{
            label,
            stroke: palette[look],
            points: { show: true, size: 5, filter: (plot, series) => [...lonely(Array.from(plot.data[series] ?? []))] },
            spanGaps: false,
          },
          ...(look === 'request' || look === 'limit'
            ? { width: 1, dash: look === 'limit' ? [6, 4] : [2, 3] }
            : { width: 2 }),
        }),
      ),
    ],
    hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? null)] },
  }
}

function ChartTable({ chart, lines, times, about }: Drawn & { about: string }) {
  const columns: readonly Column<ChartRow>[] = [
    {
      title: 'Time',
      cell: ({ seconds }) => <TimeOf seconds={seconds} />,
      text: ({ seconds }) => new Date(seconds * MS_PER_SECOND).toISOString(),
    },
    ...lines.map(
      ({ label }, index): Column<ChartRow> => ({
        title: label,
        cell: ({ values }) => {
          const value = values[index]
          return value == null ? <span class="faint">–</span> : chart.text(value)
        },
        text: ({ values }) => values[index],
        isNumber: true,
      }),
    ),
  ]
  return (
    <Table
      name={`${chart.title} of ${about}`}
      rows={rowsOfChart(times, lines)}
      keyOf={({ seconds }) => String(seconds)}
      columns={columns}
      empty={<p>No minute.</p>}
    />
  )
}

function TimeOf({ seconds }: { seconds: number }) {
  const at = new Date(seconds * MS_PER_SECOND).toISOString()
  return <time dateTime={at}>{localText(at)}</time>
}
