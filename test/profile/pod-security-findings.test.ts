import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fields, inPod, judged, row, SAFE, SAFE_POD } from './pod-security.ts'

const found = (pod: Fields, container: Fields) => {
  const { findings, status, level } = judged(inPod(pod, row('app', container)))
  return { status, level, ids: findings.map(({ id, severity }) => `${id} ${severity}`) }
}
const of = (...rules: readonly string[]) => rules.map((rule) => `podSecurity.${rule}`)

/** A change of a safe container, and its findings. */
const CONTAINER_CASES: readonly (readonly [change: Fields, found: readonly string[], status: string])[] = [
  [{ privileged: true }, of('privileged/app high'), 'risk'],
  [{ capabilitiesAdd: ['NET_BIND_SERVICE'] }, [], 'unknown'],
  // The level is baseline, so it is a warning although the finding is low.
  [{ capabilitiesAdd: ['CHOWN', 'NET_BIND_SERVICE'] }, of('capabilitiesAdded/app low'), 'warn'],
  [{ capabilitiesAdd: ['CHOWN', 'SYS_ADMIN'] }, of('capabilitiesAdded/app high'), 'risk'],
  [{ capabilitiesAdd: ['CAP_SYS_ADMIN'] }, of('capabilitiesAdded/app high'), 'risk'],
  [{ seccompProfileType: 'Unconfined' }, of('seccompUnconfined/app high'), 'risk'],
  [{ seccompProfileType: null }, of('seccompUnset/app medium'), 'warn'],
  [{ allowPrivilegeEscalation: null }, of('allowPrivilegeEscalation/app medium'), 'warn'],
  [{ allowPrivilegeEscalation: true }, of('allowPrivilegeEscalation/app medium'), 'warn'],
  [{ runAsUser: 0 }, of('runAsRoot/app high'), 'risk'],
  [{ runAsNonRoot: null }, of('mayRunAsRoot/app medium'), 'warn'],
  [{ runAsNonRoot: false }, of('mayRunAsRoot/app medium'), 'warn'],
  [{ runAsNonRoot: null, runAsUser: 1000 }, [], 'warn'],
  [{ runAsNonRoot: null, runAsUser: 0 }, of('runAsRoot/app high'), 'risk'],
  [{ capabilitiesDrop: null }, of('capabilitiesNotDropped/app medium'), 'warn'],
  [{ capabilitiesDrop: ['all'] }, of('capabilitiesNotDropped/app medium'), 'warn'],
  [{ readOnlyRootFilesystem: null }, of('readOnlyRootFilesystem/app low'), 'unknown'],
  [{ readOnlyRootFilesystem: false }, of('readOnlyRootFilesystem/app low'), 'unknown'],
]

test('each field of a container gives its finding, and the status follows', () => {
  for (const [change, ids, status] of CONTAINER_CASES) {
    const it = found(SAFE_POD, { ...SAFE, ...change })
    assert.deepEqual([it.ids, it.status], [ids, status], JSON.stringify(change))
  }
})

/** Fields of the pod of a safe container, or of one that leaves all to it. */
const POD_CASES: readonly (readonly [pod: Fields, container: Fields, found: readonly string[], status: string])[] = [
  [{ ...SAFE_POD, hostNetwork: true }, SAFE, of('hostNetwork high'), 'risk'],
  [{ ...SAFE_POD, hostPID: true, hostIPC: true }, SAFE, of('hostPID high', 'hostIPC high'), 'risk'],
  [{ automountServiceAccountToken: null, hostPID: false }, SAFE, of('automountToken low'), 'unknown'],
  [{ automountServiceAccountToken: true }, SAFE, of('automountToken low'), 'unknown'],
  [{ ...SAFE_POD, securityContext: { seccompProfileType: 'Unconfined' } }, SAFE, of('seccompUnconfined high'), 'risk'],
  [{ ...SAFE_POD, securityContext: { runAsUser: 0 } }, SAFE, of('runAsRoot/app high'), 'risk'],
  [{ ...SAFE_POD, securityContext: { runAsUser: 0 } }, { ...SAFE, runAsUser: 7 }, [], 'warn'],
  [
    { ...SAFE_POD, securityContext: { runAsUser: 7, runAsNonRoot: false } },
    { ...SAFE, runAsNonRoot: null },
    [],
    'warn',
  ],
  [{ ...SAFE_POD, securityContext: { runAsNonRoot: true } }, { ...SAFE, runAsNonRoot: null }, [], 'unknown'],
  [
    { ...SAFE_POD, securityContext: { runAsNonRoot: true } },
    { ...SAFE, runAsNonRoot: false },
    of('mayRunAsRoot/app medium'),
    'warn',
  ],
  [
    { ...SAFE_POD, securityContext: { seccompProfileType: 'Unconfined' } },
    { ...SAFE, seccompProfileType: null },
    of('seccompUnconfined high'),
    'risk',
  ],
]

test('each field of a pod gives its finding, for itself or for the containers that inherit it', () => {
  for (const [pod, container, ids, status] of POD_CASES) {
    const it = found(pod, container)
    assert.deepEqual([it.ids, it.status], [ids, status], JSON.stringify([pod, container]))
  }
})

test('without the fields of the pod there are only findings for which its own values are enough', () => {
  const unset = { ...SAFE, runAsNonRoot: null, seccompProfileType: null }
  assert.deepEqual(found({}, unset).ids, [])
  assert.deepEqual(found({}, { ...unset, runAsNonRoot: false }).ids, of('mayRunAsRoot/app medium'))
  assert.deepEqual(found({}, { ...unset, runAsUser: 0 }).ids, of('runAsRoot/app high'))
  assert.deepEqual(found({}, { ...unset, seccompProfileType: 'Unconfined' }).ids, of('seccompUnconfined/app high'))
})

test('findings have a tier and a container, and texts stay on one line whatever the container is called', () => {
  const { findings, reasons } = judged([row('a\n(b)"', { capabilitiesAdd: ['X\nY'] })])
  const [added] = findings.filter(({ severity }) => severity === 'high')
  assert.deepEqual(
    [added!.id, added!.tier, added!.container],
    ['podSecurity.capabilitiesAdded/a\n(b)"', 'P1', 'a\n(b)"'],
  )
  const texts = [...findings.flatMap(({ title, detail }) => [title, detail]), ...reasons.map(({ message }) => message)]
  assert.ok(texts.length > 10)
  for (const text of texts) assert.doesNotMatch(text, /[\p{Cc}]/u)
})

test('no two findings have the same id', () => {
  const { findings } = judged(
    inPod({ hostPID: true }, row('app', {}), row('side', { capabilitiesAdd: ['CHOWN', 'ALL'] })),
  )
  assert.equal(new Set(findings.map(({ id }) => id)).size, findings.length)
})
