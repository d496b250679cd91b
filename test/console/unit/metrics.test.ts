import assert from 'node:assert/strict'
import test from 'node:test'
import { isWanted, jobsOf, requestsOf, tablesOf } from '../../../wrangler-free-deploy/console/pages/health/facts.ts'
import { parseMetrics, rateOf } from '../../../wrangler-free-deploy/console/pages/health/metrics.ts'

const all = () => true
const scrape = (text: string, atMs = 0) => ({ metrics: parseMetrics(text, all), atMs })

test('samples with and without labels, times and escapes', () => {
  const metrics = parseMetrics(
    [
      '# HELP up Whether it is up.',
      '# TYPE up gauge',
      'up 1',
      'up_at{job="a"} 2.5e3 1395066363000',
      'path{name="C:\\\\dir\\n\\"q\\"",other="}"} -0.5',
      'trailing{a="1",} 7',
      'empty{} 8',
      'inf +Inf',
      'nothing NaN',
      '',
    ].join('\n'),
    all,
  )
  assert.equal(metrics.sum('up'), 1)
  assert.equal(metrics.sum('up_at', { job: 'a' }), 2_500)
  assert.deepEqual(metrics.all('path'), [{ labels: { name: 'C:\\dir\n"q"', other: '}' }, value: -0.5 }])
  assert.equal(metrics.sum('trailing', { a: '1' }), 7)
  assert.equal(metrics.sum('empty'), 8)
  assert.equal(metrics.sum('inf'), Number.POSITIVE_INFINITY)
  assert.ok(Number.isNaN(metrics.sum('nothing')))
})

test('a missing metric is not known, and invalid lines are no samples', () => {
  const metrics = parseMetrics('bad{a="1" 2\nworse\nunquoted{a=1} 2\nword x\n<html>\n', all)
  for (const name of ['bad', 'worse', 'unquoted', 'word', 'absent']) assert.equal(metrics.sum(name), null, name)
})

test('samples with a label are added up', () => {
  const metrics = parseMetrics('n{gate="read",x="1"} 2\nn{gate="read",x="2"} 3\nn{gate="job",x="1"} 5\n', all)
  assert.equal(metrics.sum('n', { gate: 'read' }), 5)
  assert.equal(metrics.sum('n'), 10)
  assert.deepEqual(metrics.values('n', 'gate'), ['read', 'job'])
})

test('a long line of hostile labels is parsed quickly', () => {
  const text = `n{${'a="\\\\",'.repeat(20_000)}b="} 1\n`
  const started = performance.now()
  parseMetrics(text, all)
  assert.ok(performance.now() - started < 1_000)
})

test('rates are those of one process', () => {
  const first = scrape('process_start_time_seconds 5\nn{a="1"} 10\n', 1_000)
  const second = scrape('process_start_time_seconds 5\nn{a="1"} 30\nn{a="2"} 5\n', 11_000)
  assert.equal(rateOf(first, second, 'n', { a: '1' }), 2)
  // A series that appears began at 0.
  assert.equal(rateOf(first, second, 'n', { a: '2' }), 0.5)
  assert.equal(rateOf(null, second, 'n'), null)
  assert.equal(rateOf(second, second, 'n'), null)
  assert.equal(rateOf(first, second, 'absent'), null)
  const other = scrape('process_start_time_seconds 6\nn{a="1"} 40\n', 21_000)
  assert.equal(rateOf(second, other, 'n'), null)
})

test('requests by route and outcome, writes first', () => {
  const line = (kind: string, method: string, route: string, status: string, value: number) =>
    `broker_http_request_duration_seconds_${kind}{method="${method}",route="${route}",status="${status}"} ${value}\n`
  const metrics = parseMetrics(
    line('count', 'GET', '/flows', '200', 90) +
      line('sum', 'GET', '/flows', '200', 1) +
      line('count', 'GET', '/flows', '503', 10) +
      line('sum', 'GET', '/flows', '503', 1) +
      line('count', 'POST', '/pod/spec', '200', 5) +
      line('count', 'POST', '/pod/spec', '401', 2) +
      'broker_http_request_duration_seconds_bucket{le="1",method="GET",route="/flows",status="200"} 90\n',
    isWanted,
  )
  assert.deepEqual(requestsOf(metrics), [
    { method: 'POST', route: '/pod/spec', answered: 5, refused: 2, failed: 0, meanMs: 0 },
    { method: 'GET', route: '/flows', answered: 90, refused: 0, failed: 10, meanMs: 20 },
  ])
  assert.deepEqual(metrics.all('broker_http_request_duration_seconds_bucket'), [])
})

test('jobs: late ones first, and failed runs', () => {
  const hours = 3_600
  const metrics = parseMetrics(
    [
      'broker_job_last_success_timestamp_seconds{job="flow-edges"} 100000',
      `broker_job_last_success_timestamp_seconds{job="traffic-retention"} ${100_000 - 4 * hours}`,
      `broker_job_last_success_timestamp_seconds{job="version-check"} ${100_000 - 4 * hours}`,
      'broker_job_last_success_timestamp_seconds{job="never"} 0',
      'broker_job_duration_seconds{job="flow-edges"} 0.25',
      'broker_job_passes_total{job="flow-edges",outcome="done"} 7',
      'broker_job_passes_total{job="flow-edges",outcome="failed"} 2',
      'broker_job_passes_total{job="flow-edges",outcome="skipped"} 1',
      'broker_job_passes_total{job="broken",outcome="failed"} 3',
      'broker_job_passes_total{job="elsewhere",outcome="skipped"} 3',
    ].join('\n'),
    isWanted,
  )
  const jobs = jobsOf(metrics, 100_000_000)
  assert.deepEqual(
    jobs.map(({ job, isLate }) => [job, isLate]),
    [
      ['broken', true],
      ['traffic-retention', true],
      ['flow-edges', false],
      ['version-check', false],
    ],
  )
  assert.equal(jobs[2]!.durationMs, 250)
  assert.equal(jobs[2]!.passes, 10)
  assert.deepEqual(jobs[2]!.others, [{ outcome: 'failed', count: 2 }])
  assert.equal(jobs[1]!.durationMs, null)
  // One that has failed since the start is not left out.
  assert.deepEqual([jobs[0]!.endedAt, jobs[0]!.others], [null, [{ outcome: 'failed', count: 3 }]])
})

test('the largest tables', () => {
  const metrics = parseMetrics(
    'broker_db_table_bytes{table="a"} 1\nbroker_db_table_bytes{table="b"} 9\nbroker_db_table_bytes{table="c"} 5\n' +
      'broker_db_table_rows{table="b"} 3\n',
    isWanted,
  )
  assert.deepEqual(tablesOf(metrics, 2), [
    { table: 'b', bytes: 9, rows: 3, deadRows: null },
    { table: 'c', bytes: 5, rows: null, deadRows: null },
  ])
})
