import assert from 'node:assert/strict'
import test from 'node:test'
import { sinceOf } from '../../../wrangler-free-deploy/console/pages/denials/since.ts'
import { pairsOf } from '../../../wrangler-free-deploy/console/pages/nodes/pairs.ts'
import { flagsOf, listFilter } from '../../../wrangler-free-deploy/console/parts/filter-values.ts'

const NOW = Date.parse('2026-11-27T12:00:00Z')

test('denials are asked for from a full hour on, and older rows are left out', () => {
  assert.deepEqual(sinceOf('15m', NOW), {
    asked: '2026-11-27T11:00:00Z',
    exact: '2026-11-27T11:45:00Z',
    fromMs: NOW - 900_000,
  })
  assert.equal(sinceOf('24h', NOW).asked, '2026-11-26T12:00:00Z')
  assert.equal(sinceOf('2026-11-01T10:00:00.5+02:00', NOW).asked, '2026-11-01T08:00:00Z')
  assert.equal(sinceOf('2026-11-01T10:00:00', NOW).asked, '2026-11-01T10:00:00Z')
  for (const text of [null, '']) assert.deepEqual(sinceOf(text, NOW), { asked: null, exact: null, fromMs: 0 })
})

test('a window that is no time is sent as it is', () => {
  for (const text of ['yesterday', '5x']) assert.deepEqual(sinceOf(text, NOW), { asked: text, exact: text, fromMs: 0 })
})

test('the filters of a list go to the route and to ctb', () => {
  const fields = ['namespace', 'tier', 'include_gone', 'search'].map((name) => ({ name }))
  const query = new URLSearchParams('namespace=shop&tier=P0&tier=P1&search=&include_gone=true&other=1')
  const filter = listFilter(query, fields)
  assert.deepEqual(filter, { namespace: 'shop', tier: 'P0,P1', include_gone: 'true' })
  assert.deepEqual(flagsOf(filter), ['-n', 'shop', '--tier', 'P0,P1', '--include-gone', 'true'])
})

test('a value with an exclamation mark is not looked for', () => {
  const fields = [{ name: 'namespace' }, { name: 'tier' }]
  assert.deepEqual(listFilter(new URLSearchParams('namespace=!shop&tier=!P0&tier=P1'), fields), { tier: 'P1' })
})

test('minutes of waits are added up, the longest first', () => {
  const pair = (victim: string, culprit: string, wait_ns: number) => ({
    ...{ victim_container_uid: victim, victim_namespace: 'shop', culprit_kind: 'pod', culprit_ref: culprit },
    ...{ wait_ns, count: 1 },
  })
  const rows = pairsOf([pair('a', 'x', 5), pair('a', 'y', 9), pair('a', 'x', 6)] as never)
  assert.deepEqual(
    rows.map(({ victim, culprit, waitNs, count }) => [victim, culprit, waitNs, count]),
    [
      ['a', 'x', 11, 2],
      ['a', 'y', 9, 1],
    ],
  )
})
