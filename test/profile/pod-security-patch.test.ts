import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  capabilitiesOf,
  caveatKinds,
  evidence,
  type Fields,
  inPod,
  judged,
  row,
  SAFE,
  SAFE_POD,
} from './pod-security.ts'

type Capabilities = Parameters<typeof capabilitiesOf>[0]

/** The patched spec of the pod of a Deployment, null without a recommendation, and the kinds of the caveats. */
function recommended(rows: Parameters<typeof judged>[0], capabilities: Capabilities = {}, kind = 'Deployment') {
  const { patch, recommendation } = judged(rows, { kind, capabilities: capabilitiesOf(capabilities) })
  const { template } = (patch?.spec ?? {}) as { template?: { spec: Fields } }
  return { spec: template?.spec ?? null, caveats: caveatKinds(recommendation?.caveats) }
}
const app = (securityContext: Fields) => ({ containers: [{ name: 'app', securityContext }] })
const ofPod = (securityContext: Fields) => ({ ...SAFE_POD, securityContext })

/** A change of a safe container, the patch of its security context, and the caveats after the first. */
const CONTAINER_CASES: readonly (readonly [change: Fields, patch: Fields, caveats: readonly string[]])[] = [
  [{ privileged: true }, { privileged: false }, ['unprivileged']],
  [{ allowPrivilegeEscalation: null }, { allowPrivilegeEscalation: false }, []],
  [{ runAsNonRoot: false }, { runAsNonRoot: true }, ['nonRoot']],
  [{ runAsUser: 0 }, { runAsUser: null }, []],
  [{ seccompProfileType: 'Unconfined' }, { seccompProfile: { type: 'RuntimeDefault' } }, []],
  [{ capabilitiesDrop: null }, { capabilities: { drop: ['ALL'] } }, ['default', 'dropAll']],
  [{ capabilitiesDrop: ['all'] }, { capabilities: { drop: ['ALL'] } }, ['default', 'dropAll']],
  [{ capabilitiesAdd: ['CHOWN'] }, { capabilities: { add: null } }, ['default']],
  [{ capabilitiesAdd: ['CHOWN', 'NET_BIND_SERVICE'] }, { capabilities: { add: ['NET_BIND_SERVICE'] } }, ['default']],
  [{ capabilitiesAdd: ['cap_net_bind_service'] }, { capabilities: { add: ['NET_BIND_SERVICE'] } }, ['default']],
  [
    { capabilitiesAdd: ['ALL'], capabilitiesDrop: ['NET_RAW'] },
    { capabilities: { drop: ['ALL'], add: null } },
    ['default', 'dropAll'],
  ],
]

test('only what fails of a container is patched', () => {
  for (const [change, patch, caveats] of CONTAINER_CASES) {
    const it = recommended([row('app', { ...SAFE, ...change })])
    assert.deepEqual(it.spec, app(patch), JSON.stringify(change))
    assert.deepEqual(it.caveats, ['unseen', ...caveats], JSON.stringify(change))
  }
})

/** The pod of a container that leaves all to it, and the patched spec. */
const POD_CASES: readonly (readonly [
  pod: Fields,
  container: Fields,
  spec: Fields | null,
  caveats: readonly string[],
])[] = [
  [{ hostNetwork: true }, {}, { hostNetwork: false }, ['nodeAgent', 'namespaces']],
  [{ hostPID: true, hostIPC: true }, {}, { hostPID: false, hostIPC: false }, ['namespaces']],
  [ofPod({ runAsUser: 0 }), {}, { securityContext: { runAsUser: null } }, []],
  [ofPod({ runAsNonRoot: false }), {}, { securityContext: { runAsNonRoot: true } }, ['nonRoot']],
  [
    ofPod({ seccompProfileType: 'Unconfined' }),
    {},
    { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } },
    [],
  ],
  // What a container inherits is set on the pod, what it sets itself on the container.
  [SAFE_POD, { runAsNonRoot: null }, { securityContext: { runAsNonRoot: true } }, ['nonRoot']],
  [SAFE_POD, { seccompProfileType: null }, { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } }, []],
  [ofPod({ runAsNonRoot: true }), { runAsNonRoot: false }, app({ runAsNonRoot: true }), ['nonRoot']],
  [
    ofPod({ runAsNonRoot: false }),
    { runAsNonRoot: false },
    { securityContext: { runAsNonRoot: true }, ...app({ runAsNonRoot: true }) },
    ['nonRoot'],
  ],
  [{}, { runAsNonRoot: null, seccompProfileType: null }, null, []],
  [{}, { runAsNonRoot: false }, app({ runAsNonRoot: true }), ['nonRoot']],
]

test('what fails of a pod, or is inherited by a container, is patched once on the pod', () => {
  for (const [pod, change, spec, caveats] of POD_CASES) {
    const it = recommended(inPod(pod, row('app', { ...SAFE, ...change })))
    assert.deepEqual(it.spec, spec, JSON.stringify([pod, change]))
    assert.deepEqual(it.caveats, spec === null ? [] : ['unseen', ...caveats], JSON.stringify([pod, change]))
  }
})

test('the patch is under the template of the kind, and DaemonSets are agents of nodes', () => {
  const rows = [row('app', { ...SAFE, runAsUser: 0 })]
  const spec = app({ runAsUser: null })
  for (const kind of ['Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'Rollout', 'pod'])
    assert.deepEqual(judged(rows, { kind }).patch, { spec: { template: { spec } } }, kind)
  assert.deepEqual(judged(rows, { kind: 'Pod' }).patch, { spec })
  assert.deepEqual(judged(rows, { kind: 'CronJob' }).patch, {
    spec: { jobTemplate: { spec: { template: { spec } } } },
  })
  assert.deepEqual(recommended(rows, {}, 'DaemonSet').caveats, ['unseen', 'nodeAgent'])
})

test('the text has two comment lines, then the pod, init containers and containers, with lists in one line', () => {
  const { recommendation } = judged(
    inPod(
      { hostPID: true },
      row('web', { ...SAFE, capabilitiesDrop: null, runAsNonRoot: null }),
      row('setup', { ...SAFE, capabilitiesAdd: ['NET_BIND_SERVICE', 'CHOWN'] }, { kind: 'init' }),
      row('yes', { ...SAFE, seccompProfileType: 'Unconfined' }),
    ),
  )
  const [first, second, ...lines] = recommendation!.yaml.split('\n')
  assert.match(first!, /^# .*not.* applied/)
  assert.match(second!, /^# Target: .*restricted/)
  assert.equal(
    lines.join('\n'),
    `spec:
  template:
    spec:
      hostPID: false
      securityContext:
        runAsNonRoot: true
      initContainers:
      - name: setup
        securityContext:
          capabilities:
            add: ["NET_BIND_SERVICE"]
      containers:
      - name: web
        securityContext:
          capabilities:
            drop: ["ALL"]
      - name: "yes"
        securityContext:
          seccompProfile:
            type: RuntimeDefault
`,
  )
  assert.deepEqual(
    [recommendation!.recommendation, recommendation!.targetLevel, recommendation!.format],
    [true, 'restricted', 'strategic-merge-patch'],
  )
})

test('a container may have any name', () => {
  const names = ['a: b', '- x', 'null', '#', '"', "'", 'a\nspec: {}', 'é', '\u2028', '__proto__', '|']
  const { patch, recommendation } = judged(names.map((name) => row(name, { ...SAFE, runAsUser: 0 })))
  const { template } = patch!.spec as { template: { spec: { containers: { name: string }[] } } }
  assert.deepEqual(
    template.spec.containers.map(({ name }) => name),
    names.toSorted(),
  )
  assert.ok(!recommendation!.yaml.includes('\u2028'))
})

/** A change of a safe container, the observed set, the patch of the capabilities, and the caveats after the first. */
const EVIDENCE_CASES: readonly (readonly [Fields, readonly string[], Fields | null, readonly string[]])[] = [
  [{ capabilitiesDrop: null }, [], { drop: ['ALL'] }, ['observed', 'dropAll']],
  [{ capabilitiesDrop: null }, ['CHOWN'], { drop: ['ALL'], add: ['CHOWN'] }, ['observed', 'beyond', 'dropAll']],
  [
    { capabilitiesDrop: null, capabilitiesAdd: ['SYS_ADMIN'] },
    ['NET_BIND_SERVICE'],
    { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
    ['observed', 'dropAll'],
  ],
  [{ capabilitiesAdd: ['SYS_ADMIN'] }, [], { drop: ['ALL'], add: null }, ['observed', 'dropAll']],
  // All checks pass, but another set is in use.
  [{}, ['CHOWN'], { drop: ['ALL'], add: ['CHOWN'] }, ['observed', 'beyond', 'dropAll']],
  [{ capabilitiesAdd: ['NET_BIND_SERVICE'] }, [], { drop: ['ALL'], add: null }, ['observed', 'dropAll']],
  // Nothing to change, though what is in use fails restricted.
  [{}, [], null, []],
  [{ capabilitiesAdd: [] }, [], null, []],
  [{ capabilitiesAdd: ['CHOWN', 'SETUID'] }, ['CHOWN', 'SETUID'], null, []],
  // Kubernetes refuses this spelling of a capability that is in use.
  [{ capabilitiesAdd: ['cap_chown'] }, ['CHOWN'], { drop: ['ALL'], add: ['CHOWN'] }, ['observed', 'beyond', 'dropAll']],
]

test('with evidence the observed capabilities are recommended, and a used one is never dropped', () => {
  for (const [change, used, capabilities, caveats] of EVIDENCE_CASES) {
    const it = recommended([row('app', { ...SAFE, ...change })], { app: evidence(used) })
    assert.deepEqual(it.spec, capabilities && app({ capabilities }), JSON.stringify([change, used]))
    assert.deepEqual(it.caveats, capabilities ? ['unseen', ...caveats] : [], JSON.stringify([change, used]))
  }
})

test('evidence of one container says nothing of another, and insufficient evidence nothing at all', () => {
  const bad = { ...SAFE, capabilitiesDrop: null, capabilitiesAdd: ['CHOWN'] }
  const it = recommended([row('app', bad), row('side', bad)], { app: evidence(['SETUID']), side: null })
  assert.deepEqual(it.spec, {
    containers: [
      { name: 'app', securityContext: { capabilities: { drop: ['ALL'], add: ['SETUID'] } } },
      { name: 'side', securityContext: { capabilities: { drop: ['ALL'], add: null } } },
    ],
  })
  assert.deepEqual(it.caveats, ['unseen', 'observed', 'beyond', 'default', 'dropAll'])
})

test('ephemeral and stale containers are never patched, not even by evidence or through the pod', () => {
  const bad = { ...SAFE, runAsNonRoot: null, seccompProfileType: null, capabilitiesDrop: null }
  const debug = row('debug', bad, { kind: 'ephemeral' })
  const old = row('old', bad, { isRunning: false, isCurrent: false })
  const all = { debug: evidence(['CHOWN']), old: evidence(['CHOWN']) }
  assert.equal(recommended([row('app'), debug, old], all).spec, null)
  const it = recommended([row('app', { ...SAFE, runAsUser: 0 }), debug, old], all)
  assert.deepEqual(it.spec, app({ runAsUser: null }))
  assert.deepEqual(it.caveats, ['unseen', 'ephemeral'])
})

test('all caveats come in their order', () => {
  const { recommendation } = judged(
    inPod(
      { hostNetwork: true },
      row('a', { privileged: true, runAsNonRoot: false }),
      row('b', {}),
      row('c', {}),
      row('debug', {}, { kind: 'ephemeral' }),
    ),
    {
      kind: 'DaemonSet',
      capabilities: capabilitiesOf({
        a: evidence(['CHOWN', 'SYS_ADMIN'], { probedKept: ['SYS_ADMIN'] }),
        b: evidence(['NET_BIND_SERVICE'], { probedOmitted: [{ capability: 'SYS_ADMIN', reason: 'only probed' }] }),
        c: null,
      }),
    },
  )
  assert.deepEqual(caveatKinds(recommendation!.caveats), [
    ...['unseen', 'nonRoot', 'nodeAgent', 'unprivileged', 'namespaces', 'observed', 'kept', 'omitted', 'beyond'],
    ...['default', 'dropAll', 'ephemeral'],
  ])
  const texts = recommendation!.caveats
  assert.match(texts[5]!, / a, b /)
  assert.match(texts[6]!, /^Container a keeps SYS_ADMIN/)
  assert.match(texts[7]!, /^Container b does not get SYS_ADMIN/)
  assert.match(texts[8]!, /^Container a keeps CHOWN, SYS_ADMIN/)
  assert.match(texts[9]!, / c /)
  assert.match(texts[11]!, /debug/)
})

test('texts name ten containers at most', () => {
  const rows = Array.from({ length: 256 }, (_, i) => row(`app-${String(i).padStart(3, '0')}`, {}))
  const { recommendation, containers } = judged(rows)
  assert.equal(containers.length, 256)
  assert.ok(recommendation!.caveats.some((caveat) => caveat.includes('app-009, +246 more')))
  assert.ok(recommendation!.caveats.every((caveat) => !caveat.includes('app-010')))
})
