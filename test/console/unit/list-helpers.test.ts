import assert from 'node:assert/strict'
import test from 'node:test'
import { zonedSince } from '../../../wrangler-free-deploy/console/pages/denials/since.ts'
import { pairsOf } from '../../../wrangler-free-deploy/console/pages/nodes/pairs.ts'
import { flagsOf, listFilter } from '../../../wrangler-free-deploy/console/parts/filter-values.ts'

const NOW = Date.parse('2026-11-27T12:00:00Z')

test('distances become times with a zone', () => {
  assert.equal(zonedSince('24h', NOW), '2026-11-26T12:00:00Z')
  assert.equal(zonedSince('2w', NOW), '2026-11-13T12:00:00Z')
  assert.equal(zonedSince('2026-11-01T10:00:00.5+02:00', NOW), '2026-11-01T08:00:00Z')
  for (const text of [null, '', 'yesterday', '5x']) assert.equal(zonedSince(text, NOW), null)
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
