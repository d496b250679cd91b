/** Flows and edges, in front of a broker that knows a cluster. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { stripVTControlCharacters } from 'node:util'
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
