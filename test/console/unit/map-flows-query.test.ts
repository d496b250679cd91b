/** Links of the map list the flows that its numbers count. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { edgeFlowsQuery, nodeFlowsQuery } from '../../../wrangler-free-deploy/console/pages/map/flows-query.ts'
import type { MapEdge, MapNode } from '../../../wrangler-free-deploy/console/pages/map/graph.ts'

const node = (kind: MapNode['kind'], id: string) => ({ kind, id }) as MapNode
const api = node('workload', 'workload:shop/Deployment/api')
const payments = node('namespace', 'namespace:payments')
const external = node('external', 'external')
const edge = (...verdicts: (string | null)[]) =>
  ({ isDropped: verdicts.includes('DROP'), parts: verdicts.map((verdict) => ({ verdict })) }) as unknown as MapEdge

test('an edge links to the flows of its verdict, of the filter and of the window', () => {
  const filter = { port: ['8080'], since: '7d', namespace: ['shop', '!ads'] }
  assert.deepEqual(edgeFlowsQuery(edge('ALLOW', 'ALLOW'), api, payments, filter), {
    from_workload: ['shop/Deployment/api'],
    to_namespace: ['payments'],
    verdict: ['ALLOW'],
    port: ['8080'],
    since: ['7d'],
    namespace: ['shop', '!ads'],
  })
  assert.deepEqual(edgeFlowsQuery(edge('DROP'), api, external, {}), {
    from_workload: ['shop/Deployment/api'],
    peer: ['external'],
    verdict: ['DROP'],
  })
})

test('flows without a known verdict are no dropped ones', () => {
  assert.deepEqual(edgeFlowsQuery(edge('ALLOW', null), api, payments, {}).verdict, ['!DROP'])
  // The filter refuses other verdicts, which agents may send.
  assert.deepEqual(edgeFlowsQuery(edge('ALLOW', 'LOG'), api, payments, {}).verdict, ['!DROP'])
})

test('the filter does not widen what an edge says of the same parameter', () => {
  const filter = {
    from_workload: ['shop/api', 'shop/web', '!shop/db'],
    peer: ['external', 'service'],
    verdict: ['ALLOW', 'DROP'],
  }
  assert.deepEqual(edgeFlowsQuery(edge('ALLOW'), api, external, filter), {
    from_workload: ['shop/Deployment/api', '!shop/db'],
    peer: ['external'],
    verdict: ['ALLOW'],
  })
})

test('a node links to its flows on either side, within the filter', () => {
  assert.deepEqual(nodeFlowsQuery(api, { port: ['8080'] }), { workload: ['shop/Deployment/api'], port: ['8080'] })
  assert.deepEqual(nodeFlowsQuery(external, {}), { peer: ['external'] })
})

test('a node outside of the namespaces of the filter has no link: its flows with them cannot be asked for', () => {
  const shop = node('namespace', 'namespace:shop')
  assert.equal(nodeFlowsQuery(shop, { namespace: ['payments'] }), null)
  assert.deepEqual(nodeFlowsQuery(payments, { namespace: ['payments', 'ads'] }), { namespace: ['payments'] })
  assert.deepEqual(nodeFlowsQuery(shop, { namespace: ['!payments'] }), { namespace: ['shop', '!payments'] })
  assert.deepEqual(nodeFlowsQuery(external, { peer: ['service', 'external'] }), { peer: ['external'] })
})

test('a network links to the flows of its addresses', () => {
  const network = node('network', 'network:192.0.2.0/24')
  assert.deepEqual(edgeFlowsQuery(edge('ALLOW'), api, network, {}), {
    from_workload: ['shop/Deployment/api'],
    peer: ['external'],
    to_ip: ['192.0.2.0/24'],
    verdict: ['ALLOW'],
  })
})
