import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from './rendered.ts'
import { faults } from './restricted.ts'

const good = (): Json => ({
  securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  volumes: [{ name: 'a', secret: {} }],
  containers: [{ name: 'c', securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }],
})

test('a pod that meets the standard has no faults', () => {
  assert.deepEqual(faults(good()), [])
})

const changes: [fault: string, change: (pod: Json) => void][] = [
  ['hostNetwork', (pod) => Object.assign(pod, { hostNetwork: true })],
  ['hostPID', (pod) => Object.assign(pod, { hostPID: true })],
  ['hostIPC', (pod) => Object.assign(pod, { hostIPC: true })],
  ['volume hostPath', (pod) => pod.volumes.push({ name: 'b', hostPath: { path: '/' } })],
  ['sysctls', (pod) => Object.assign(pod.securityContext, { sysctls: [{ name: 'kernel.msgmax', value: '1' }] })],
  ['c: privileged', (pod) => Object.assign(pod.containers[0].securityContext, { privileged: true })],
  ['c: allowPrivilegeEscalation', (pod) => delete pod.containers[0].securityContext.allowPrivilegeEscalation],
  ['c: runAsNonRoot', (pod) => delete pod.securityContext.runAsNonRoot],
  ['c: runAsUser', (pod) => Object.assign(pod.containers[0].securityContext, { runAsUser: 0 })],
  ['c: seccompProfile', (pod) => Object.assign(pod.securityContext, { seccompProfile: { type: 'Unconfined' } })],
  ['c: capabilities are kept', (pod) => Object.assign(pod.containers[0].securityContext, { capabilities: {} })],
  [
    'c: capabilities are added',
    (pod) => Object.assign(pod.containers[0].securityContext.capabilities, { add: ['NET_ADMIN'] }),
  ],
  ['c: procMount', (pod) => Object.assign(pod.containers[0].securityContext, { procMount: 'Unmasked' })],
  ['c: hostPort', (pod) => Object.assign(pod.containers[0], { ports: [{ containerPort: 1, hostPort: 1 }] })],
]
for (const [fault, change] of changes) {
  test(`a pod with the fault "${fault}" has only that fault`, () => {
    const pod = good()
    change(pod)
    assert.deepEqual(faults(pod), [fault])
  })
}

test('init containers are checked too', () => {
  assert.deepEqual(faults({ ...good(), initContainers: [{ name: 'i' }] }), [
    'i: allowPrivilegeEscalation',
    'i: capabilities are kept',
  ])
})
