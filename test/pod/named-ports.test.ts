import assert from 'node:assert/strict'
import { test } from 'node:test'
import { namedPorts } from '../../lib/pods/posted-object.ts'

const of = (spec: unknown) => namedPorts({ metadata: {}, spec } as never)
const one = (...ports: unknown[]) => of({ containers: [{ ports }] })

test('the named ports of containers and of sidecars', () => {
  assert.deepEqual(
    of({
      containers: [
        { name: 'web', ports: [{ name: 'http', containerPort: 8080 }, { containerPort: 9 }] },
        { name: 'proxy', ports: [{ name: 'https', containerPort: 8443, protocol: 'TCP' }] },
      ],
      initContainers: [
        { name: 'mesh', restartPolicy: 'Always', ports: [{ name: 'mesh', containerPort: 15001 }] },
        { name: 'once', ports: [{ name: 'setup', containerPort: 1 }] },
      ],
    }),
    { 'http/TCP': 8080, 'https/TCP': 8443, 'mesh/TCP': 15001 },
  )
})

test('names are told apart by protocol, and of containers that share both the first counts', () => {
  const ports = (...list: object[]) => ({ ports: list })
  const containers = [
    ports({ name: 'http', containerPort: 8080 }, { name: 'syslog', containerPort: 1514 }),
    ports({ name: 'http', containerPort: 9090 }, { name: 'syslog', containerPort: 5514, protocol: 'UDP' }),
    ports({ name: 'odd', containerPort: 1, protocol: 'tcp' }, { name: 'none', containerPort: 2, protocol: 3 }),
  ]
  const sidecar = { ...ports({ name: 'syslog', containerPort: 1, protocol: 'UDP' }), restartPolicy: 'Always' }
  assert.deepEqual(of({ containers, initContainers: [sidecar] }), {
    ...{ 'http/TCP': 8080, 'syslog/TCP': 1514, 'syslog/UDP': 5514 },
  })
})

test('a pod without a manifest has unknown ports, one without ports has none', () => {
  assert.equal(namedPorts(null), null)
  for (const spec of [undefined, null, [], {}, { containers: null }, { containers: [null, 1, {}, { ports: 'x' }] }])
    assert.deepEqual(of(spec), {}, JSON.stringify(spec))
})

test('ports that are none are left out', () => {
  for (const containerPort of [0, -1, 65_536, 1.5, '80', null, undefined, [80]])
    assert.deepEqual(one({ name: 'http', containerPort }), {}, String(containerPort))
  for (const name of [80, null, '', 'HTTP', 'a b', 'x'.repeat(64), '__proto__'])
    assert.deepEqual(one({ name, containerPort: 80 }), {}, String(name))
  assert.deepEqual(one(null, 'http', { name: 'http', containerPort: 65_535 }), { 'http/TCP': 65_535 })
})

test('at most 64 ports are kept', () => {
  const ports = Array.from({ length: 70 }, (_, i) => ({ name: `p-${i}`, containerPort: i + 1 }))
  assert.equal(Object.keys(one(...ports)!).length, 64)
})
