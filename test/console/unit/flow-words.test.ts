import assert from 'node:assert/strict'
import test from 'node:test'
import { flowArguments } from '../../../wrangler-free-deploy/console/pages/flows/commands.ts'
import { isOlderThanKept } from '../../../wrangler-free-deploy/console/pages/flows/window.ts'
import {
  attributionText,
  causeText,
  nextMicrosecond,
  retriesText,
  seenByText,
  verdictText,
} from '../../../wrangler-free-deploy/console/pages/flows/words.ts'

const none = { kind: null, namespace: null, name: null, workload: null, ip: null, port: null }

test('the time behind one microsecond', () => {
  assert.equal(nextMicrosecond('2026-11-27T12:02:41.116855'), '2026-11-27T12:02:41.116856')
  assert.equal(nextMicrosecond('2026-11-27T12:02:41.116'), '2026-11-27T12:02:41.116001')
  assert.equal(nextMicrosecond('2026-11-27T12:02:41'), '2026-11-27T12:02:41.000001')
  assert.equal(nextMicrosecond('2026-12-31T23:59:59.999999'), '2027-01-01T00:00:00')
})

test('null is "not known", never none or 0', () => {
  assert.equal(retriesText({ syn_retries: null }), 'not known')
  assert.equal(retriesText({ syn_retries: 0 }), 'never')
  assert.equal(retriesText({ syn_retries: 3 }), '3 times')
  assert.match(causeText({ drop_cause: null }), /^not known/)
  assert.match(causeText({ drop_cause: 'policy-governs' }), /does not prove/)
  assert.match(causeText({ drop_cause: 'NO_RESPONSE' }), /NO_RESPONSE/)
  assert.match(seenByText({ traffic_type: null }), /^not known/)
  assert.match(verdictText({ decision: null }), /did not say/)
})

test('dropped does not claim that a policy denied it', () => {
  assert.match(verdictText({ decision: 'DROP' }), /no answer to the SYN.*does not mean that a policy denied it/)
})

test('an unknown peer is distinguished from a public address', () => {
  const flow = { peer_kind: null, traffic_type: 'EGRESS', from: none }
  assert.match(attributionText({ ...flow, to: { ...none, kind: 'external' } }), /^A public address/)
  assert.match(attributionText({ ...flow, to: { ...none, kind: 'unresolved' } }), /tries again/)
  assert.match(attributionText({ ...flow, peer_kind: 'service', to: none }), /service/)
})

test('a window that begins before the oldest stored flow', () => {
  const now = Date.parse('2026-11-27T12:00:00Z')
  const hourAgo = now - 3_600_000
  assert.equal(isOlderThanKept('2h', hourAgo, now), true)
  assert.equal(isOlderThanKept('1h', hourAgo, now), false)
  assert.equal(isOlderThanKept('15m', hourAgo, now), false)
  assert.equal(isOlderThanKept('2026-11-27T10:00:00Z', hourAgo, now), true)
  assert.equal(isOlderThanKept('2026-11-27T11:30:00', hourAgo, now), false)
  assert.equal(isOlderThanKept('nonsense', hourAgo, now), false)
})

test('the arguments of ctb', () => {
  const query = { from_namespace: ['shop', '!cart'], verdict: ['DROP'], since: '24h', order: 'oldest' }
  assert.deepEqual(
    flowArguments({ query, isLive: false }).join(' '),
    ['flows --from-namespace shop --from-namespace !cart --verdict DROP --since 24h --order oldest'].join(' '),
  )
  assert.equal(
    flowArguments({ query, isLive: true }).join(' '),
    'flows -f --from-namespace shop --from-namespace !cart --verdict DROP',
  )
})
