import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PodSecurity } from '../../lib/profile/record/pod-security.ts'
import { type Fields, fails, inPod, judged, row, SAFE, SAFE_POD } from './pod-security.ts'

const UNSEEN = [
  ...['hostProcess', 'hostPathVolumes', 'hostPorts', 'hostProbesLifecycle', 'appArmor', 'seLinux', 'procMount'],
  ...['sysctls', 'volumeTypes'],
]

test('a container with all that restricted asks for is still unknown: half of the checks cannot be made', () => {
  const it = judged([row('app')])
  assert.equal(it.status, 'unknown')
  assert.deepEqual([it.level, it.levelConfidence], ['restricted', 'upper_bound'])
  assert.deepEqual(it.unevaluatedChecks, UNSEEN)
  assert.deepEqual([it.coverage.level, it.coverage.fraction], ['partial', 0.5])
  assert.deepEqual(
    it.reasons.map(({ code }) => code),
    ['pss_unverified'],
  )
  assert.deepEqual([it.containers[0]!.level, it.containers[0]!.failing, it.pod.failing], ['restricted', [], []])
  assert.deepEqual([it.findings, it.recommendation], [[], null])
})

/** A change of the container of a safe pod, the checks that then fail with their fields, and the level. */
const CONTAINER_CASES: readonly (readonly [change: Fields, fails: readonly string[], level: string])[] = [
  [{ privileged: true }, ['privileged privileged'], 'privileged'],
  [{ privileged: false }, [], 'restricted'],
  [{ capabilitiesAdd: ['NET_BIND_SERVICE'] }, [], 'restricted'],
  [{ capabilitiesAdd: [] }, [], 'restricted'],
  [{ capabilitiesAdd: ['CHOWN'] }, ['capabilitiesRestricted capabilities.add'], 'baseline'],
  ...['NET_ADMIN', 'ALL', 'all', 'CAP_NET_ADMIN', 'cap_net_admin', 'chown', 'CAP_CHOWN', 'net_bind_service', ''].map(
    (name) =>
      [
        { capabilitiesAdd: [name] },
        ['capabilitiesBaseline capabilities.add', 'capabilitiesRestricted capabilities.add'],
        'privileged',
      ] as const,
  ),
  [{ capabilitiesDrop: null }, ['capabilitiesRestricted capabilities.drop'], 'baseline'],
  [{ capabilitiesDrop: ['NET_RAW'] }, ['capabilitiesRestricted capabilities.drop'], 'baseline'],
  [{ capabilitiesDrop: ['all'] }, ['capabilitiesRestricted capabilities.drop'], 'baseline'],
  [{ capabilitiesDrop: ['CAP_ALL'] }, ['capabilitiesRestricted capabilities.drop'], 'baseline'],
  [{ capabilitiesDrop: ['ALL', 'NET_RAW'] }, [], 'restricted'],
  [
    { capabilitiesAdd: ['CHOWN'], capabilitiesDrop: null },
    ['capabilitiesRestricted capabilities.drop', 'capabilitiesRestricted capabilities.add'],
    'baseline',
  ],
  ...['Unconfined', 'unconfined', 'Nothing'].map(
    (type) =>
      [
        { seccompProfileType: type },
        ['seccompBaseline seccompProfile.type', 'seccompRestricted seccompProfile.type'],
        'privileged',
      ] as const,
  ),
  [{ seccompProfileType: 'Localhost' }, [], 'restricted'],
  [{ seccompProfileType: null }, ['seccompRestricted seccompProfile.type'], 'baseline'],
  [{ allowPrivilegeEscalation: null }, ['privilegeEscalation allowPrivilegeEscalation'], 'baseline'],
  [{ allowPrivilegeEscalation: true }, ['privilegeEscalation allowPrivilegeEscalation'], 'baseline'],
  [{ runAsNonRoot: false }, ['runAsNonRoot runAsNonRoot'], 'baseline'],
  [{ runAsNonRoot: null }, ['runAsNonRoot runAsNonRoot'], 'baseline'],
  [{ runAsUser: 0 }, ['runAsUser runAsUser'], 'baseline'],
  [{ runAsUser: 1 }, [], 'restricted'],
  [{ readOnlyRootFilesystem: false }, [], 'restricted'],
]

test('each field of a container fails the checks that the standards name', () => {
  for (const [change, failing, level] of CONTAINER_CASES) {
    const { containers, pod, ...it } = judged([row('app', { ...SAFE, ...change })])
    assert.deepEqual(fails(containers[0]!.failing), failing, JSON.stringify(change))
    assert.deepEqual([containers[0]!.level, it.level], [level, level], JSON.stringify(change))
    assert.deepEqual(pod.failing, [])
    assert.equal(it.levelConfidence, level === 'privileged' ? 'confirmed' : 'upper_bound')
  }
})

test('baseline allows exactly these capabilities', () => {
  const allowed = [
    ...['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP'],
    ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
  ]
  const others = [
    ...['AUDIT_CONTROL', 'AUDIT_READ', 'BLOCK_SUSPEND', 'BPF', 'CHECKPOINT_RESTORE', 'DAC_READ_SEARCH', 'IPC_LOCK'],
    ...['IPC_OWNER', 'LEASE', 'LINUX_IMMUTABLE', 'MAC_ADMIN', 'MAC_OVERRIDE', 'NET_ADMIN', 'NET_BROADCAST', 'NET_RAW'],
    ...['PERFMON', 'SYSLOG', 'SYS_ADMIN', 'SYS_BOOT', 'SYS_MODULE', 'SYS_NICE', 'SYS_PACCT', 'SYS_PTRACE', 'SYS_RAWIO'],
    ...['SYS_RESOURCE', 'SYS_TIME', 'SYS_TTY_CONFIG', 'WAKE_ALARM', 'ALL'],
  ]
  const levelWith = (name: string) => judged([row('app', { ...SAFE, capabilitiesAdd: [name] })]).level
  assert.deepEqual(
    [...allowed, ...others].filter((name) => levelWith(name) !== 'privileged'),
    allowed,
  )
})

/** Fields of the pod of a safe container; a failing field is named from `spec`. */
const POD_CASES: readonly (readonly [pod: Fields, fails: readonly string[], level: string])[] = [
  [{ hostNetwork: true }, ['hostNamespaces spec.hostNetwork'], 'privileged'],
  [
    { hostNetwork: true, hostPID: true, hostIPC: true },
    ['hostNamespaces spec.hostNetwork', 'hostNamespaces spec.hostPID', 'hostNamespaces spec.hostIPC'],
    'privileged',
  ],
  [{ hostNetwork: false, hostUsers: true }, [], 'restricted'],
  [
    { securityContext: { seccompProfileType: 'Unconfined' } },
    ['seccompBaseline spec.securityContext.seccompProfile.type'],
    'privileged',
  ],
  [{ securityContext: { runAsNonRoot: false } }, ['runAsNonRoot spec.securityContext.runAsNonRoot'], 'baseline'],
  [{ securityContext: { runAsUser: 0 } }, ['runAsUser spec.securityContext.runAsUser'], 'baseline'],
  [{ securityContext: {} }, [], 'restricted'],
]

test('each field of a pod fails the checks that the standards name, and lowers the level of the workload', () => {
  for (const [pod, failing, level] of POD_CASES) {
    const it = judged(inPod(pod, row('app')))
    assert.deepEqual(fails(it.pod.failing), failing, JSON.stringify(pod))
    assert.deepEqual([it.level, it.containers[0]!.level], [level, 'restricted'], JSON.stringify(pod))
  }
})

test('a container inherits what it leaves unset from its pod, and its own value wins', () => {
  const own = { ...SAFE, runAsNonRoot: null, seccompProfileType: null }
  const of = (securityContext: Fields, container: Fields) =>
    fails(judged(inPod({ securityContext }, row('app', container))).containers[0]!.failing)
  assert.deepEqual(of({ runAsNonRoot: true, seccompProfileType: 'Localhost' }, own), [])
  assert.deepEqual(of({ runAsNonRoot: false, seccompProfileType: 'Unconfined' }, own), [
    'runAsNonRoot runAsNonRoot',
    'seccompRestricted seccompProfile.type',
  ])
  assert.deepEqual(of({ runAsNonRoot: false, seccompProfileType: 'Unconfined' }, SAFE), [])
  assert.deepEqual(of({ runAsNonRoot: true }, { ...SAFE, runAsNonRoot: false }), ['runAsNonRoot runAsNonRoot'])
})

test('a failing entry has the field as in a manifest and the value as reported', () => {
  const bad = { privileged: true, capabilitiesAdd: ['CAP_SYS_ADMIN', 'chown'], capabilitiesDrop: ['all'], runAsUser: 0 }
  const pod = { securityContext: { seccompProfileType: 'Unconfined', runAsNonRoot: true } }
  const { containers } = judged(inPod(pod, row('set up', bad, { kind: 'init' })))
  assert.deepEqual(
    containers[0]!.failing.map(({ check, level, field, value }) => [check, level, field, value]),
    [
      ['privileged', 'baseline', 'spec.initContainers[set up].securityContext.privileged', true],
      [
        ...['capabilitiesBaseline', 'baseline', 'spec.initContainers[set up].securityContext.capabilities.add'],
        bad.capabilitiesAdd,
      ],
      [
        ...[
          'privilegeEscalation',
          'restricted',
          'spec.initContainers[set up].securityContext.allowPrivilegeEscalation',
        ],
        null,
      ],
      ['runAsUser', 'restricted', 'spec.initContainers[set up].securityContext.runAsUser', 0],
      [
        ...['seccompRestricted', 'restricted', 'spec.initContainers[set up].securityContext.seccompProfile.type'],
        'Unconfined',
      ],
      [
        'capabilitiesRestricted',
        'restricted',
        'spec.initContainers[set up].securityContext.capabilities.drop',
        ['all'],
      ],
      [
        ...['capabilitiesRestricted', 'restricted', 'spec.initContainers[set up].securityContext.capabilities.add'],
        bad.capabilitiesAdd,
      ],
    ],
  )
  const ephemeral = judged([row('debug', {}, { kind: 'ephemeral' })]).containers[0]!.failing
  assert.equal(ephemeral[0]!.field, 'spec.ephemeralContainers[debug].securityContext.allowPrivilegeEscalation')
})

test('without the fields of the pod, nothing that depends on them is judged or found', () => {
  const unset = { ...SAFE, runAsNonRoot: null, seccompProfileType: null }
  const it = judged(inPod({}, row('app', unset), row('other')))
  assert.equal(it.pod.known, false)
  assert.deepEqual(it.unevaluatedChecks, [...UNSEEN, 'hostNamespaces', 'runAsNonRoot', 'seccompRestricted'])
  assert.equal(it.coverage.fraction, 0.33)
  assert.deepEqual(
    it.reasons.map(({ code }) => code),
    ['pss_unverified', 'pod_fields_unknown'],
  )
  assert.deepEqual([it.level, it.findings, it.recommendation], ['restricted', [], null])

  const set = judged(inPod({}, row('app')))
  assert.deepEqual([set.unevaluatedChecks, set.coverage.fraction], [[...UNSEEN, 'hostNamespaces'], 0.44])
  const half = judged(inPod({}, row('app', { ...SAFE, seccompProfileType: null })))
  assert.deepEqual(half.unevaluatedChecks, [...UNSEEN, 'hostNamespaces', 'seccompRestricted'])
  assert.equal(half.coverage.fraction, 0.39)

  const bad = judged(inPod({}, row('app', { ...SAFE, runAsNonRoot: false, seccompProfileType: 'Unconfined' })))
  assert.deepEqual(fails(bad.containers[0]!.failing), [
    'seccompBaseline seccompProfile.type',
    'runAsNonRoot runAsNonRoot',
    'seccompRestricted seccompProfile.type',
  ])
})

test('only a block with fields counts as known, whatever is stored', () => {
  for (const stored of [{}, null, [], 'text', 1])
    assert.equal(judged([row('app', SAFE, { podSecurity: stored as Fields })]).pod.known, false, String(stored))
  assert.equal(judged([row('app', SAFE, { podSecurity: { hostPID: false } })]).pod.known, true)
  const context = judged([row('app', null as unknown as Fields)]).containers[0]!.securityContext
  assert.ok(Object.values(context).every((value) => value === null))
})

test('an answer has the documented keys in their order, and no stored key that is not documented', () => {
  const stored = { ...SAFE, secret: 'x' }
  const {
    findings: _,
    patch: __,
    ...dimension
  } = judged(inPod({ ...SAFE_POD, secret: 'x', securityContext: { runAsUser: 0, secret: 'x' } }, row('app', stored)))
  assert.deepEqual(PodSecurity.parse(dimension), dimension)
  assert.deepEqual(Object.keys(dimension), Object.keys(PodSecurity.shape))
  assert.deepEqual(Object.keys(dimension.pod), Object.keys(PodSecurity.shape.pod.shape))
  assert.deepEqual(Object.keys(dimension.containers[0]!), Object.keys(PodSecurity.shape.containers.element.shape))
})
