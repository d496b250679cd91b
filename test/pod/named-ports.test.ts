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
    { http: 8080, https: 8443, mesh: 15001 },
  )
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
  assert.deepEqual(one(null, 'http', { name: 'http', containerPort: 65_535 }), { http: 65_535 })
})

test('at most 64 ports are kept', () => {
  const ports = Array.from({ length: 70 }, (_, i) => ({ name: `p-${i}`, containerPort: i + 1 }))
  assert.equal(Object.keys(one(...ports)!).length, 64)
})
