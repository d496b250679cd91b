/** The form of stored packs, which releases with more fields have to read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { rollUp } from '../../jobs/compute/roll-up.ts'
import { FOLDED_COLUMNS, MINUTE_COLUMNS, NULL_CELL, pack, unpack } from '../../lib/compute/pack.ts'

/** The columns of the first packs. A column never moves; new ones are at the end. */
const CPU = `cpu_usage_millis_avg cpu_usage_millis_max cpu_usage_millis_last cpu_quota_usec cpu_period_usec
cpu_request_millis cpu_limit_millis cpu_nr_periods cpu_nr_throttled cpu_throttled_usec cpu_psi_some10_avg
cpu_psi_some10_max cpu_psi_full10_avg cpu_psi_full10_max`
const MEMORY = `mem_current_avg mem_current_max mem_current_last mem_working_set_avg mem_working_set_max
mem_working_set_last mem_limit mem_request mem_psi_some10_avg mem_psi_some10_max mem_psi_full10_avg mem_psi_full10_max
mem_events_high mem_events_max mem_oom_kill mem_refault mem_pgmajfault`
const RUNQ = 'runq_count runq_p50_us runq_p95_us runq_p99_us runq_max_us runq_overflow runq_hist'
const FIRST_MINUTES = `id ts ${CPU} ${MEMORY} ${RUNQ}`.split(/\s/)
const FIRST_FOLDED = [...FIRST_MINUTES, 'parts', 'newest_ts']

const packOf = (columns: readonly string[]) =>
  deflateRawSync(columns.map((name) => `${name} 1\x1f${name} 2`).join('\n'))
const rowsOf = (columns: readonly string[]) => columns.map((name) => [`${name} 1`, `${name} 2`])

test('packs of the first release are read, and columns stay where they are', () => {
  for (const [first, columns] of [
    [FIRST_MINUTES, MINUTE_COLUMNS],
    [FIRST_FOLDED, FOLDED_COLUMNS],
  ] as const) {
    const read = unpack(packOf(first), columns)
    for (const [c, name] of columns.entries())
      assert.deepEqual(read[c], first.includes(name) ? [`${name} 1`, `${name} 2`] : [NULL_CELL, NULL_CELL])
    const text = inflateRawSync(pack(rowsOf(columns), columns)).toString()
    assert.ok(text.startsWith(inflateRawSync(packOf(first)).toString()), 'no column has moved')
  }
})

test('columns that a pack lacks are null, and those that only a newer release knows are ignored', () => {
  const older = unpack(packOf(FIRST_MINUTES.slice(0, -2)), FIRST_MINUTES)
  assert.deepEqual(older.slice(-3), [['runq_max_us 1', 'runq_max_us 2'], ...Array(2).fill([NULL_CELL, NULL_CELL])])
  assert.deepEqual(unpack(packOf([...FIRST_FOLDED, 'newer']), FIRST_FOLDED), rowsOf(FIRST_FOLDED))
})

test('the order of the fields of a sample does not matter to packs', () => {
  const moved = MINUTE_COLUMNS.toReversed()
  assert.deepEqual(unpack(pack(rowsOf(MINUTE_COLUMNS), MINUTE_COLUMNS), moved), rowsOf(moved))
  assert.deepEqual(unpack(pack(rowsOf(moved), moved), MINUTE_COLUMNS), rowsOf(MINUTE_COLUMNS))
})

test('minutes without a gauge do not count for its means', () => {
  const value = (name: string, at: number) =>
    name === 'ts'
      ? `2026-01-01 09:0${at}:00`
      : name.includes('_avg') && at < 2
        ? NULL_CELL
        : name === 'id'
          ? `${at}`
          : '7'
  const minutes = (count: number) =>
    MINUTE_COLUMNS.map((name) => Array.from({ length: count }, (_, at) => value(name, at)))
  const means = ['cpu_usage_millis_avg', 'mem_current_avg'].map((name) => FOLDED_COLUMNS.indexOf(name))
  const rolledUp = (count: number) => {
    const rows = rollUp([minutes(count)], [])
    return means.map((column) => rows[column])
  }
  assert.deepEqual(rolledUp(4), [['7'], ['7']])
  assert.deepEqual(rolledUp(2), [[NULL_CELL], [NULL_CELL]])
})
