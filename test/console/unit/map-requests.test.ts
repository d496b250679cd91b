/** The filter of the page and the open namespaces share a parameter of the API. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Edge } from '../../../wrangler-free-deploy/console/api/edge.ts'
import { askedNamespaces, keptBy } from '../../../wrangler-free-deploy/console/pages/map/requests.ts'

const edge = (from: string | null, to: string | null) => ({ from: { namespace: from }, to: { namespace: to } }) as Edge

test('the open namespaces are asked for, without what the filter excludes', () => {
  assert.deepEqual(askedNamespaces(['shop'], {}), ['shop'])
  assert.deepEqual(askedNamespaces(['shop'], { namespace: ['payments', '!ads'] }), ['shop', '!ads'])
})

test('edges of an open namespace are kept if an end is in a namespace of the filter', () => {
  const keep = keptBy({ namespace: ['payments', '!ads'] })
  assert.equal(keep(edge('shop', 'payments')), true)
  assert.equal(keep(edge('payments', null)), true)
  assert.equal(keep(edge('shop', 'shop')), false)
  assert.equal(keep(edge('shop', null)), false)
  assert.equal(keptBy({ namespace: ['!ads'] })(edge('shop', null)), true)
  assert.equal(keptBy({})(edge('shop', null)), true)
})
