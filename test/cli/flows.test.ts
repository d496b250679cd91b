/** Flows and edges, in front of a broker that knows a cluster. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { startStub } from '../support/stub.ts'
import { startCluster } from './cluster.ts'
import { golden } from './golden.ts'
import { inProcess } from './in-process.ts'

const cluster = await startCluster()
const ctb = inProcess(cluster.url)

golden(
  'flows',
  ctb,
  ['flows'],
  [
    ['flows', '-n', 'shop', '--peer', '!pod', '--port', '443', '--port', '53', '--last', '20d'],
    ['flows', '--limit', '2', '--order', 'oldest'],
    ['flows', '--verdict', 'DROP', '--to-ip', '172.16.0.0/12', '-o', 'wide'],
    ['flows', '-n', 'nowhere'],
    ['flows', '--last', '15m'],
    ['flows', '--label', 'app=web', '--limit', 'all'],
    ['flows', '-o', 'jsonpath={range .items[*]}{.from.name} {.to.port}{"\\n"}{end}', '-n', 'kube-system'],
    ['flows', '--print-request', '-n', 'shop', '--from-pod', 'shop/web-*'],
    ['flows', '--print-request', '-n', 'shop', '--since', '2026-01-31', '--limit', '20000', '-o', 'ndjson'],
    ['flows', '--print-request', '-o', 'csv', '--fields', 'uuid,from,to'],
    ['flows', '--print-request', '-f', '-n', 'shop'],
    ['flows', '--verdict', 'deny'],
    ['flows', '-n', 'shop', '-A'],
  ],
)

golden(
  'edges',
  ctb,
  ['edges'],
  [
    ['edges', '-n', 'shop', '--order', 'flows', '--limit', '3'],
    ['edges', '--group', 'namespace', '--cidr', '24'],
    ['edges', '--group', 'service', '--to-service', 'shop/api', '--to-service', 'lab/ntp'],
    ['edges', '--pod', 'shop/web-*', '--label', 'app=web', '--last', '20d'],
    ['edges', '--last', '15m'],
    ['edges', '-o', 'jsonpath={range .items[*]}{.from.workload} {.flows}{"\\n"}{end}', '-n', 'monitoring'],
    ['edges', '--print-request', '-n', 'shop', '--group', 'service'],
    ['edges', '--group', 'pod'],
  ],
)

test('a dropped connection is red on a terminal, whose width cuts the rows', async () => {
  for (const [command, columns] of [
    ['flows', 60],
    ['edges', 90],
  ] as const) {
    const { out } = await ctb([command], { columns })
    assert.ok(out.includes('\u001b[31mDROP\u001b[0m'))
    const lines = stripVTControlCharacters(out).split('\n')
    assert.ok(lines.every((line) => [...line].length <= columns) && lines.some((line) => line.endsWith('…')))
  }
})

test('the facts of several pages are those of the list', async () => {
  const row = { uuid: 'a', time_stamp: '2026-01-31T09:00:00', decision: null, traffic_type: null, ip_protocol: null }
  const flow = { ...row, pod_namespace: null, pod_name: null, drop_cause: null, syn_retries: null }
  const side = { kind: null, namespace: null, name: null, workload: null, ip: null, port: null }
  const items = Array.from({ length: 600 }, () => ({ ...flow, from: side, to: side }))
  const page = { items, observedSince: '2026-01-31T09:00:00', observedUntil: '2026-01-31T09:00:00', unstamped: 2 }
  const stub = await startStub(({ query }) => ({
    json: { ...page, nextAfter: query.after === undefined ? 'b' : query.after === 'b' ? 'c' : null },
  }))
  const few = await inProcess(stub.url)(['flows'])
  assert.equal(few.out.split('\n').length, 1_000 + 2)
  const leftOut = 'flows left out: no workload, label or node was recorded to put the filter to'
  const kept = 'flows are kept since 2026-01-31T09:00:00Z'
  assert.equal(few.err, `${kept}\n4 ${leftOut}\nthere are more: see --limit\n`)
  const all = await inProcess(stub.url)(['flows', '--limit', 'all'])
  assert.equal(all.out.split('\n').length, 1_800 + 2)
  assert.equal(all.err, `${kept}\n6 ${leftOut}\n`)
  assert.deepEqual(
    stub.heard.map(({ query }) => query.limit),
    ['1000', '1000', '2000', '2000', '2000'],
  )
})
