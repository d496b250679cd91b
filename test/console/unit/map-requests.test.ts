/** The filter of the page and the open namespaces share a parameter of the API. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Edge } from '../../../wrangler-free-deploy/console/api/edge.ts'
import {
  askedNamespaces,
  MAX_OPEN,
  matchesNamespaces,
  splitOpen,
} from '../../../wrangler-free-deploy/console/pages/map/requests.ts'

const edge = (from: string | null, to: string | null) => ({ from: { namespace: from }, to: { namespace: to } }) as Edge

test('the open namespaces are requested, without those that the filter excludes', () => {
  assert.deepEqual(askedNamespaces(['shop'], {}), ['shop'])
  assert.deepEqual(askedNamespaces(['shop'], { namespace: ['payments', '!ads'] }), ['shop', '!ads'])
})

test('edges of an open namespace are kept if an end is in a namespace of the filter', () => {
  const keep = matchesNamespaces({ namespace: ['payments', '!ads'] })
  assert.equal(keep(edge('shop', 'payments')), true)
  assert.equal(keep(edge('payments', null)), true)
  assert.equal(keep(edge('shop', 'shop')), false)
  assert.equal(keep(edge('shop', null)), false)
  assert.equal(matchesNamespaces({ namespace: ['!ads'] })(edge('shop', null)), true)
  assert.equal(matchesNamespaces({})(edge('shop', null)), true)
})

test('namespaces beyond the limit are named, and none is opened twice', () => {
  const names = Array.from({ length: MAX_OPEN + 2 }, (_, i) => `team-${i}`)
  const { open, leftOut } = splitOpen(['team-0', ...names])
  assert.deepEqual(open, names.slice(0, MAX_OPEN))
  assert.deepEqual(leftOut, names.slice(MAX_OPEN))
})
