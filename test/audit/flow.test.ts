import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coverageQuery, evaluateRequest, hasDirection } from '../../lib/audit/flow.ts'
import type { Flow } from '../../lib/traffic/index.ts'

const flow = (fields: Partial<Flow> = {}): Flow => ({
  uuid: 'f',
  pod_name: 'web-0',
  pod_namespace: 'shop',
  pod_ip: '10.0.0.1',
  pod_port: '8080',
  ip_protocol: 'TCP',
  traffic_type: 'EGRESS',
  traffic_in_out_ip: '10.0.0.2',
  traffic_in_out_port: '5432',
  decision: 'ALLOW',
  time_stamp: '2024-05-01T10:00:00.123456',
  ...fields,
})
const sent = (fields: Partial<Flow>) => JSON.parse(JSON.stringify(evaluateRequest(flow(fields))))

test('an egress flow has its pod for a source and the port of its peer', () => {
  assert.deepEqual(sent({}), {
    srcPodNamespace: 'shop',
    srcPodName: 'web-0',
    srcIP: '10.0.0.1',
    dstIP: '10.0.0.2',
    dstPort: 5432,
    protocol: 'TCP',
    timestamp: '2024-05-01T10:00:00.123456+00:00',
  })
})

test('an ingress flow has its pod for a destination and the port of its pod', () => {
  assert.deepEqual(sent({ traffic_type: 'INGRESS', ip_protocol: 'SCTP', time_stamp: '2024-05-01T10:00:00' }), {
    dstPodNamespace: 'shop',
    dstPodName: 'web-0',
    srcIP: '10.0.0.2',
    dstIP: '10.0.0.1',
    dstPort: 8080,
    protocol: 'SCTP',
    timestamp: '2024-05-01T10:00:00+00:00',
  })
})

test('the direction is read in any case and without surrounding spaces; a flow with any other direction is not evaluated', () => {
  assert.equal(sent({ traffic_type: ' ingress ' }).dstPodName, 'web-0')
  assert.equal(sent({ traffic_type: 'Egress\n' }).srcPodName, 'web-0')
  for (const traffic_type of ['EGRESS', ' ingress ', 'Egress\n']) assert.ok(hasDirection(flow({ traffic_type })))
  for (const traffic_type of ['', 'FORWARD', 'IN GRESS', null, undefined])
    assert.ok(!hasDirection(flow({ traffic_type })))
})

test('null fields are left out, and the default protocol is TCP', () => {
  const bare = { pod_name: null, pod_namespace: undefined, pod_ip: null, traffic_in_out_ip: null, ip_protocol: null }
  assert.deepEqual(sent(bare), { dstPort: 5432, protocol: 'TCP', timestamp: '2024-05-01T10:00:00.123456+00:00' })
  assert.equal(sent({ ip_protocol: '' }).protocol, '')
  assert.equal(sent({ pod_namespace: '' }).srcPodNamespace, '')
})

for (const [text, port] of [
  ['0', 0],
  ['65535', 65_535],
  ['65536', 0],
  ['-1', 0],
  ['80.5', 0],
  ['8e1', 0],
  [' 80', 0],
  ['http', 0],
  ['', 0],
  ['9'.repeat(64), 0],
  [null, 0],
] as const)
  test(`port ${JSON.stringify(text)} is sent as ${port}`, () =>
    assert.equal(sent({ traffic_in_out_port: text }).dstPort, port))

test('a cause is requested for every drop of a pod with name and namespace, in the direction of the row', () => {
  for (const [traffic_type, direction] of [
    ['EGRESS', 'Egress'],
    ['INGRESS', 'Ingress'],
    [' ingress ', 'Ingress'],
    ['FORWARD', 'Egress'],
    ['', 'Egress'],
    [null, 'Egress'],
    [undefined, 'Egress'],
  ] as const)
    assert.deepEqual(coverageQuery(flow({ decision: 'DROP', traffic_type })), {
      namespace: 'shop',
      pod: 'web-0',
      direction,
    })
  for (const fields of [
    { decision: 'ALLOW' },
    { decision: 'drop' },
    { decision: null },
    { decision: 'DROP', pod_name: null },
    { decision: 'DROP', pod_namespace: '' },
  ])
    assert.equal(coverageQuery(flow(fields)), null, JSON.stringify(fields))
})
