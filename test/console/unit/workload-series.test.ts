import assert from 'node:assert/strict'
import test from 'node:test'
import {
  chartsOf,
  containersOf,
  latencyText,
  lonely,
  type Minute,
  millisText,
  percentText,
  rowsOfChart,
  shownLines,
  summaryOf,
} from '../../../wrangler-free-deploy/console/pages/workload/compute/series.ts'

const AT = Date.UTC(2026, 10, 27, 12) / 1_000

const minute = (index: number, values: Partial<Minute> = {}): Minute =>
  ({
    ...{ ts: new Date((AT + index * 60) * 1_000).toISOString(), resolution_secs: 60, container: 'web' },
    ...{ cpu_usage_millis_avg: 100, cpu_usage_millis_max: 200, cpu_request_millis: 150, cpu_limit_millis: null },
    ...{ mem_working_set_avg: 1_024, mem_working_set_max: 2_048, mem_request: null, mem_limit: null },
    ...{ cpu_nr_periods: 0, cpu_nr_throttled: 0, cpu_psi_some10_avg: 0, mem_psi_some10_avg: 0 },
    ...{ runq_p50_us: null, runq_p95_us: null, runq_p99_us: null },
    ...values,
  }) as Minute

const chart = (rows: readonly Minute[], title: string) => {
  const { times, charts } = chartsOf(rows, 'web')
  return { times, chart: charts.find((one) => one.title.startsWith(title))! }
}

test('a minute that is missing is null, not zero', () => {
  const { times, chart: cpu } = chart([minute(0), minute(1), minute(4)], 'CPU')
  assert.deepEqual(times, [AT, AT + 60, AT + 120, AT + 240])
  assert.deepEqual(cpu.lines[0]!.values, [100, 100, null, 100])
})

test('rows of five minutes follow rows of one without a gap', () => {
  const { times } = chart([minute(0, { resolution_secs: 300 }), minute(5), minute(6)], 'CPU')
  assert.deepEqual(times, [AT, AT + 300, AT + 360])
})

test('only the minutes of one container are drawn', () => {
  const rows = [minute(0), minute(0, { container: 'agent', cpu_usage_millis_avg: 7 })]
  assert.deepEqual(containersOf(rows), ['agent', 'web'])
  assert.deepEqual(chart(rows, 'CPU').chart.lines[0]!.values, [100])
})

test('a container without a limit is not throttled by 0 %: there is nothing to show', () => {
  const { chart: none } = chart([minute(0)], 'Throttled')
  assert.deepEqual(none.lines[0]!.values, [null])
  assert.deepEqual(shownLines(none), [])
  assert.match(summaryOf(none), /no CPU limit/)
  const { chart: some } = chart([minute(0, { cpu_nr_periods: 600, cpu_nr_throttled: 30 })], 'Throttled')
  assert.deepEqual(some.lines[0]!.values, [5])
})

test('without the contention probe run-queue latency is not known', () => {
  assert.match(summaryOf(chart([minute(0)], 'Run-queue').chart), /nobody measured/)
})

test('lines without a value are left out, and the chart has a text alternative', () => {
  const { chart: cpu } = chart([minute(0), minute(1, { cpu_usage_millis_avg: 1_500 })], 'CPU')
  assert.deepEqual(
    shownLines(cpu).map(({ label }) => label),
    ['mean', 'highest sample', 'request'],
  )
  assert.match(summaryOf(cpu), /^mean: last 1.50 cores, highest 1.50 cores; highest sample: last 200 m/)
})

test('the table has the newest minute first, and no gaps', () => {
  const { times, chart: cpu } = chart([minute(0), minute(3, { cpu_usage_millis_avg: 5 })], 'CPU')
  const rows = rowsOfChart(times, cpu.lines)
  assert.deepEqual(
    rows.map(({ seconds, values }) => [seconds, values[0]]),
    [
      [AT + 180, 5],
      [AT, 100],
    ],
  )
})

test('a value between gaps is drawn as a point', () => {
  assert.deepEqual(lonely([1, 2, null, 3, null, 4]), [3, 5])
  assert.deepEqual(lonely([7]), [0])
  assert.deepEqual(lonely([]), [])
})

test('units', () => {
  assert.equal(millisText(999), '999 m')
  assert.equal(millisText(1_000), '1.00 cores')
  assert.equal(percentText(0), '0 %')
  assert.equal(percentText(0.04), '0.0 %')
  assert.equal(percentText(12.4), '12 %')
  assert.equal(latencyText(40), '40 µs')
  assert.equal(latencyText(600), '0.6 ms')
  assert.equal(latencyText(31_000), '31 ms')
})
