import assert from 'node:assert/strict'
import test from 'node:test'
import type { Column } from '../../wrangler-free-deploy/cli/output/cell.ts'
import { headOf, lineOf } from '../../wrangler-free-deploy/cli/output/csv.ts'
import {
  cpuColumn,
  mebiText,
  millisText,
  percentText,
  waitColumn,
  waitText,
} from '../../wrangler-free-deploy/cli/output/units.ts'

test('numbers have a unit for people', () => {
  assert.deepEqual([0, 0.04, 0.4, 9.96, 12.4, 1_600].map(millisText), ['0m', '0m', '0.4m', '10m', '12m', '1600m'])
  assert.deepEqual([0, 2 ** 20, 1.55 * 2 ** 20].map(mebiText), ['0.0Mi', '1.0Mi', '1.6Mi'])
  assert.deepEqual([0, 1.04, 12.5, 100].map(percentText), ['0%', '1%', '12.5%', '100%'])
  assert.deepEqual([2_500_000, 999_000_000, 1_000_000_000, 90_500_000_000].map(waitText), [
    '2.5ms',
    '999ms',
    '1s',
    '90.5s',
  ])
})

test('CSV has plain numbers, and the unit in the header', () => {
  const columns: Column<number | null>[] = [cpuColumn('CPU', (row) => row), waitColumn('WAIT', (row) => row)]
  assert.equal(headOf(columns), 'cpu_millis,wait_ns\r\n')
  assert.equal(lineOf(columns, 250, String), '250,250\r\n')
  assert.equal(lineOf(columns, null, String), ',\r\n')
  assert.deepEqual(
    columns.map(({ shownOf }) => shownOf!(null)),
    [null, null],
  )
})
