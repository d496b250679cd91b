import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type DeniedEdge,
  filterOfSide,
  groupDenied,
  type Side,
  sideText,
} from '../../../wrangler-free-deploy/console/pages/policy/network/denied.ts'

const none = { namespace: null, name: null, workload: null, ip: null }
const workload = (name: string): Side => ({
  ...{ kind: 'workload', ...none, namespace: 'shop', workload: `Deployment/${name}` },
})
const api = workload('api')
const web = workload('web')
const outside: Side = { kind: 'external', ...none, ip: '192.0.2.1' }

function edge(from: Side, to: Side, port: string, flows: number, directions: ('egress' | 'ingress')[]): DeniedEdge {
  const denial = { document: 1, policy: 'shop/api', path: null, why: 'no rule' }
  const times = { firstSeenAt: '2026-01-01T00:00:00', lastNewAt: '2026-01-02T00:00:00' }
  const deniedBy = directions.map((direction) => ({ ...denial, direction }))
  return { from, to, port, protocol: 'TCP', flows, ...times, deniedBy, example: null }
}

describe('denied edges by peer', () => {
  it('are one group for a peer and a direction, those with the most flows first', () => {
    const groups = groupDenied([
      edge(web, api, '8080', 10, ['ingress']),
      edge(api, outside, '443', 30, ['egress']),
      edge(web, api, '9090', 5, ['ingress']),
      edge(api, web, '80', 1, ['egress']),
    ])
    assert.deepEqual(
      groups.map(({ direction, peer, isolated, flows, edges }) => [
        ...[direction, sideText(peer), sideText(isolated), flows],
        edges.map(({ port }) => port),
      ]),
      [
        ['to', 'external 192.0.2.1', 'shop/Deployment/api', 30, ['443']],
        ['from', 'shop/Deployment/web', 'shop/Deployment/api', 15, ['8080', '9090']],
        ['to', 'shop/Deployment/web', 'shop/Deployment/api', 1, ['80']],
      ],
    )
  })

  it('belong to the accepting end if both ends deny', () => {
    const [group] = groupDenied([edge(web, api, '8080', 1, ['egress', 'ingress'])])
    assert.deepEqual([group!.direction, group!.peer], ['from', web])
  })

  it('are none for none', () => assert.deepEqual(groupDenied([]), []))
})

describe('the filter of flows that finds a side', () => {
  for (const [side, filter] of [
    [api, ['workload', 'shop/Deployment/api']],
    [{ kind: 'pod', ...none, namespace: 'shop', name: 'api-1' }, ['pod', 'shop/api-1']],
    [{ kind: 'service', ...none, namespace: 'shop', name: 'api' }, ['service', 'shop/api']],
    [{ kind: 'node', ...none, ip: '10.0.0.1' }, ['ip', '10.0.0.1']],
    [outside, ['ip', '192.0.2.1']],
  ] as const satisfies readonly (readonly [Side, readonly [string, string]])[])
    it(sideText(side), () => assert.deepEqual(filterOfSide(side), filter))

  it('is none for an unresolved side without an address', () =>
    assert.equal(filterOfSide({ kind: 'unresolved', ...none }), null))
})
