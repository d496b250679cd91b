import assert from 'node:assert/strict'
import test from 'node:test'
import { zonedSince } from '../../../wrangler-free-deploy/console/pages/denials/since.ts'
import { pairsOf } from '../../../wrangler-free-deploy/console/pages/nodes/pairs.ts'

const NOW = Date.parse('2026-11-27T12:00:00Z')

test('distances become times with a zone', () => {
  assert.equal(zonedSince('24h', NOW), '2026-11-26T12:00:00Z')
  assert.equal(zonedSince('2w', NOW), '2026-11-13T12:00:00Z')
  assert.equal(zonedSince('2026-11-01T10:00:00.5+02:00', NOW), '2026-11-01T08:00:00Z')
  for (const text of [null, '', 'yesterday', '5x']) assert.equal(zonedSince(text, NOW), null)
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
