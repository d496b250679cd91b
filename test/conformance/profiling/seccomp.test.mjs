// Seccomp profiles: the observed union, its capture verdict and hash, the mirrored custom resource, its distribution and drift, the list cache.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  allow,
  calls,
  crBody,
  inOrder,
  metric,
  micros,
  naiveTime,
  ok,
  plainly,
  pod,
  profiling,
  refused,
  unique,
} from '../lib/profiling.mjs'

let b
let s
const cleanups = []
before(async () => {
  b = await startBroker({ env: { SECCOMP_PROFILES_CACHE_TTL_SECS: '0' } })
  s = profiling(b)
})
after(async () => {
  for (const stop of cleanups.reverse()) await stop().catch(() => {})
  await b?.stop()
})
const another = async (env) => {
  const o = await startBroker({ env })
  cleanups.push(() => o.stop())
  return { o, t: profiling(o) }
}

const ENTRY_KEYS = [
  'namespace',
  'kind',
  'name',
  'hash',
  'syscallCount',
  'architectures',
  'updatedAt',
  'capture',
  'captureComplete',
  'suggestedName',
  'recommendedSnippet',
  'crCount',
  'cr',
  'denials',
]
const CR_KEYS = [
  'name',
  'defaultAction',
  'hash',
  'syscallCount',
  'architectures',
  'localhostProfile',
  'distribution',
  'statusDistribution',
  'drift',
  'updatedAt',
]

/** FNV-1a, 64 bit, over the sorted names, the sorted raw architectures and the logging action. */
function fingerprint(names, arches) {
  const text = [[...names].sort().join(','), [...arches].sort().join(','), 'SCMP_ACT_LOG'].join('\x1e')
  let h = 0xcbf29ce484222325n
  for (const byte of Buffer.from(text)) h = ((h ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
  return h.toString(16).padStart(16, '0')
}
const nodes = new Set()
async function node(name, body) {
  nodes.add(name)
  const r = ok(await s.node(name, body))
  return r
}
/** A workload with one complete pod, and its mirrored resource. */
async function withCr(crOver = {}, cr = unique('cr'), names = ['read', 'write']) {
  const w = await s.workload({ pods: [{ names }] })
  ok(await s.putCr(w.ns, cr, crBody(w.name, crOver)))
  return { ...w, cr, path: `kguardian/${w.ns}/${cr}.json` }
}

// ---- the list

check('seccomp: a list entry has the keys of the sheet in their order', async () => {
  const w = await s.workload({})
  const e = await s.entry(w)
  inOrder(e, ENTRY_KEYS)
  inOrder(e.capture, ['level', 'complete', 'pods', 'more', 'incomplete'], 'capture')
  inOrder(e.capture.pods[0], ['name', 'level'], 'capture.pods[0]')
})

check('seccomp: a workload without a resource and without denial data', async () => {
  const w = await s.workload({ name: 'api', pods: [{ names: ['write', 'read', 'read'] }] })
  const { hash, updatedAt, ...rest } = await s.entry(w)
  assert.deepEqual(rest, {
    namespace: w.ns,
    kind: 'Deployment',
    name: 'api',
    syscallCount: 2,
    architectures: ['SCMP_ARCH_X86_64'],
    capture: { level: 'full', complete: true, pods: [{ name: w.pods[0].name, level: 'full' }], more: 0, incomplete: 0 },
    captureComplete: true,
    suggestedName: 'deployment-api',
    recommendedSnippet: {
      seccompProfile: { type: 'Localhost', localhostProfile: `kguardian/${w.ns}/deployment-api.json` },
    },
    crCount: 0,
    cr: null,
    denials: null,
  })
  assert.match(hash, /^[0-9a-f]{16}$/)
  assert.match(updatedAt, naiveTime)
})

check('seccomp: the list is ordered by namespace, kind and name', async () => {
  const [a, z] = [unique('order-a'), unique('order-z')]
  for (const [ns, kind, name] of [
    [z, 'Deployment', 'a'],
    [a, 'StatefulSet', 'a'],
    [a, 'Deployment', 'b'],
    [a, 'DaemonSet', 'z'],
    [a, 'Deployment', 'a'],
  ]) {
    await s.workload({ ns, kind, name })
  }
  const mine = (await s.list())
    .filter((e) => e.namespace === a || e.namespace === z)
    .map((e) => [e.namespace, e.kind, e.name])
  assert.deepEqual(mine, [
    [a, 'DaemonSet', 'z'],
    [a, 'Deployment', 'a'],
    [a, 'Deployment', 'b'],
    [a, 'StatefulSet', 'a'],
    [z, 'Deployment', 'a'],
  ])
})

check('seccomp: the list refuses the removed query parameter state', async () => {
  refused(await b.get('/seccomp/profiles?state=audit'), 400)
})

// ---- the observed union

check('seccomp: the union is taken over all pods of the workload, dead pods included', async () => {
  const w = await s.workload({
    pods: [{ names: ['read', 'openat'] }, { names: ['openat', 'write'] }, { names: ['execve'] }],
  })
  ok(await b.post('/pod/mark_dead', { pod_name: w.pods[0].name }))
  await s.syscalls(calls(w.pods[1].name, ['mmap']))
  const p = await s.profile(w)
  assert.equal(p.syscallCount, 5)
  assert.deepEqual(p.profile.syscalls, [allow('execve', 'mmap', 'openat', 'read', 'write')])
})

check('seccomp: workloads of the same name in another kind or namespace stay apart', async () => {
  const w = await s.workload({ pods: [{ names: ['read'] }] })
  await s.workload({ ns: w.ns, kind: 'StatefulSet', name: w.name, pods: [{ names: ['write'] }] })
  await s.workload({ name: w.name, pods: [{ names: ['mmap'] }] })
  assert.deepEqual((await s.profile(w)).profile.syscalls, [allow('read')])
})

check('seccomp: a pod without a workload has no profile', async () => {
  const ns = unique('bare')
  const [p] = await s.pods(pod({ ns, kind: null }))
  const [half] = await s.pods(pod({ ns, workload: null, workload_name: null }))
  await s.syscalls(calls(p.pod_name, ['read']), calls(half.pod_name, ['read']))
  assert.deepEqual(
    (await s.list()).filter((e) => e.namespace === ns),
    [],
  )
  plainly(await s.single({ ns, kind: 'Pod', name: p.pod_name }), 404)
})

check('seccomp: a pod that gets its workload later contributes all its names on its next report', async () => {
  const [ns, name] = [unique('late'), unique('late-pod')]
  await s.syscalls(calls(name, ['read', 'write']))
  await s.pods(pod({ ns, name }))
  await s.syscalls(calls(name, ['mmap']))
  assert.deepEqual((await s.profile({ ns, name: 'web' })).profile.syscalls, [allow('mmap', 'read', 'write')])
})

check('seccomp: the hash is FNV-1a over names, raw architectures and the logging action', async () => {
  const w = await s.workload({
    pods: [{ names: ['write', 'read', 'accept4'] }, { names: ['read', 'exit_group'], arch: 'aarch64' }],
  })
  assert.equal((await s.entry(w)).hash, fingerprint(['accept4', 'exit_group', 'read', 'write'], ['aarch64', 'x86_64']))
})

check('seccomp: hash and updatedAt change exactly when the union grows', async () => {
  const w = await s.workload({ pods: [{ names: ['read', 'write'] }, { names: ['write'] }] })
  const first = await s.entry(w)
  await s.syscalls(calls(w.pods[0].name, ['write', 'read']), calls(w.pods[1].name, ['read']))
  const same = await s.entry(w)
  assert.equal(same.hash, first.hash)
  assert.equal(same.updatedAt, first.updatedAt)
  await s.syscalls(calls(w.pods[1].name, ['futex']))
  const grown = await s.entry(w)
  assert.equal(grown.hash, fingerprint(['futex', 'read', 'write'], ['x86_64']))
  assert.notEqual(grown.hash, first.hash)
  assert.ok(micros(grown.updatedAt) > micros(first.updatedAt))
})

check('seccomp: architectures are mapped, sorted, and unknown ones left out', async () => {
  const w = await s.workload({
    pods: [{ names: ['read'] }, { names: ['read'], arch: 'aarch64' }, { names: ['read'], arch: 'riscv64' }],
  })
  const p = await s.profile(w)
  assert.deepEqual(p.architectures, ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_X86_64'])
  assert.deepEqual(p.profile.architectures, p.architectures)
  assert.equal(p.hash, fingerprint(['read'], ['aarch64', 'riscv64', 'x86_64']))
  const none = await s.workload({ pods: [{ names: ['read'], arch: 'riscv64' }] })
  assert.deepEqual((await s.entry(none)).architectures, [])
})

// ---- capture

check('seccomp: the capture level is the lowest of all contributors, worst first', async () => {
  const ns = unique('rank')
  const levels = ['full', 'custom', 'low', 'high', 'medium', undefined]
  const w = await s.workload({ ns, pods: levels.map((level, i) => ({ names: ['read'], level, name: `${ns}-${i}` })) })
  const { capture, captureComplete } = await s.entry(w)
  assert.equal(capture.level, 'custom')
  assert.equal(capture.complete, false)
  assert.equal(captureComplete, false)
  assert.deepEqual(
    capture.pods,
    [
      [1, 'custom'],
      [5, 'unknown'],
      [2, 'low'],
      [4, 'medium'],
      [3, 'high'],
      [0, 'full'],
    ].map(([i, level]) => ({ name: `${ns}-${i}`, level })),
  )
  assert.equal(capture.more, 0)
  assert.equal(capture.incomplete, 5)
})

for (const [level, others] of [
  ['low', ['medium', 'high', 'full']],
  ['medium', ['high', 'full']],
  ['high', ['full']],
  ['unknown', ['low', 'full']],
]) {
  check(`seccomp: ${level} is worse than ${others.join(', ')}`, async () => {
    const w = await s.workload({
      pods: [...others, level === 'unknown' ? undefined : level].map((l) => ({ names: ['read'], level: l })),
    })
    const { capture } = await s.entry(w)
    assert.equal(capture.level, level)
    assert.equal(capture.complete, false)
    assert.equal(capture.pods[0].level, level)
  })
}

check('seccomp: custom is never complete', async () => {
  const w = await s.workload({ pods: [{ names: ['read'], level: 'custom' }] })
  const e = await s.entry(w)
  assert.deepEqual(e.capture, {
    level: 'custom',
    complete: false,
    pods: [{ name: w.pods[0].name, level: 'custom' }],
    more: 0,
    incomplete: 1,
  })
  assert.equal(e.captureComplete, false)
})

check('seccomp: a tier is trimmed and lower-cased, a tier nobody knows is unknown', async () => {
  const w = await s.workload({ pods: [{ names: ['read'], level: ' FULL ' }] })
  assert.equal((await s.entry(w)).capture.level, 'full')
  const x = await s.workload({ pods: [{ names: ['read'], level: 'ultra' }] })
  assert.equal((await s.entry(x)).capture.level, 'unknown')
})

check('seccomp: a dead pod still lowers the capture, a pod without syscalls does not', async () => {
  const w = await s.workload({
    pods: [{ names: ['read'], level: 'low' }, { names: ['read'], level: 'full' }, { level: 'custom' }],
  })
  ok(await b.post('/pod/mark_dead', { pod_name: w.pods[0].name }))
  const { capture } = await s.entry(w)
  assert.equal(capture.level, 'low')
  assert.deepEqual(
    capture.pods.map((p) => p.name),
    [w.pods[0].name, w.pods[1].name],
  )
})

check('seccomp: at most 20 contributors are listed, the rest is counted', async () => {
  const ns = unique('crowd')
  const at = (i) => `${ns}-${String(i).padStart(2, '0')}`
  const w = await s.workload({
    ns,
    pods: Array.from({ length: 23 }, (_, i) => ({ names: ['read'], name: at(i), level: i === 22 ? 'medium' : 'full' })),
  })
  const { capture } = await s.entry(w)
  assert.equal(capture.pods.length, 20)
  assert.equal(capture.more, 3)
  assert.equal(capture.incomplete, 1)
  assert.deepEqual(capture.pods.slice(0, 2), [
    { name: at(22), level: 'medium' },
    { name: at(0), level: 'full' },
  ])
  assert.equal(capture.pods[19].name, at(18))
})

// ---- names

check('seccomp: the suggested name is lower case with other characters replaced', async () => {
  const w = await s.workload({ kind: 'StatefulSet', name: 'My_App.v2' })
  const e = await s.entry(w)
  assert.equal(e.suggestedName, 'statefulset-my-app.v2')
  assert.equal(e.recommendedSnippet.seccompProfile.localhostProfile, `kguardian/${w.ns}/statefulset-my-app.v2.json`)
})

check('seccomp: with a resource the snippet names its file', async () => {
  const w = await withCr()
  inOrder((await s.entry(w)).recommendedSnippet.seccompProfile, ['type', 'localhostProfile'], 'snippet')
  assert.equal((await s.entry(w)).recommendedSnippet.seccompProfile.localhostProfile, w.path)
})

// ---- the mirrored resource

check('seccomp: PUT of a resource answers its identity, hash and syscall count', async () => {
  const ns = unique('put')
  const r = ok(await s.putCr(ns, 'web', crBody('web', { names: ['read', 'write', 'read'], hash: 'abc' })))
  inOrder(r.json, ['namespace', 'name', 'hash', 'syscallCount'])
  assert.deepEqual(r.json, { namespace: ns, name: 'web', hash: 'abc', syscallCount: 2 })
})

check('seccomp: an entry shows its mirrored resource', async () => {
  const w = await withCr({ names: ['read', 'write'], hash: 'h7' })
  const e = await s.entry(w)
  assert.equal(e.crCount, 1)
  inOrder(e.cr, CR_KEYS, 'cr')
  const { updatedAt, distribution, ...rest } = e.cr
  assert.match(updatedAt, naiveTime)
  inOrder(distribution, ['ready', 'total', 'state', 'present'], 'distribution')
  inOrder(rest.drift, ['missing', 'extra', 'inSync'], 'drift')
  assert.deepEqual(rest, {
    name: w.cr,
    defaultAction: 'SCMP_ACT_ERRNO',
    hash: 'h7',
    syscallCount: 2,
    architectures: ['SCMP_ARCH_X86_64'],
    localhostProfile: w.path,
    statusDistribution: null,
    drift: { missing: [], extra: [], inSync: true },
  })
})

check('seccomp: only rules that allow count, an absent action allows, ill-formed names are skipped', async () => {
  const w = await withCr({
    spec: {
      syscalls: [
        allow('read', 'write'),
        allow('read'),
        { names: ['mmap'] },
        { names: ['ptrace'], action: 'SCMP_ACT_ERRNO', errnoRet: 1 },
        { names: ['bpf'], action: 'SCMP_ACT_LOG' },
        allow('not a name!', ''),
      ],
    },
  })
  const { cr } = await s.entry(w)
  assert.equal(cr.syscallCount, 3)
  assert.deepEqual(cr.drift.extra, ['mmap'])
})

check('seccomp: a blank default action of a resource is the logging action', async () => {
  for (const defaultAction of ['', undefined])
    assert.equal((await s.entry(await withCr({ spec: { defaultAction } }))).cr.defaultAction, 'SCMP_ACT_LOG')
})

check('seccomp: the old ARM64 token of a resource is folded', async () => {
  const w = await withCr({ spec: { architectures: ['SCMP_ARCH_ARM64', 'SCMP_ARCH_X86_64'] } })
  assert.deepEqual((await s.entry(w)).cr.architectures, ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_X86_64'])
})

check('seccomp: the status distribution is mirrored from either place, the top level wins', async () => {
  const d = { ready: 1, total: 3, state: 'Partial', summary: '1/3' }
  const read = async (over) => (await s.entry(await withCr(over))).cr.statusDistribution
  const inner = await read({ status: { distribution: d } })
  inOrder(inner, ['ready', 'total', 'state'], 'statusDistribution')
  assert.deepEqual(inner, { ready: 1, total: 3, state: 'Partial' })
  assert.deepEqual(await read({ distribution: { ready: 3, total: 3, state: 'Ready' }, status: { distribution: d } }), {
    ready: 3,
    total: 3,
    state: 'Ready',
  })
  assert.deepEqual(await read({ distribution: { ready: 0, total: 2 } }), { ready: 0, total: 2, state: 'Pending' })
  assert.equal(await read({ status: { distribution: null } }), null)
  assert.equal(await read({ distribution: { ready: 0, total: 0, state: 'Pending' } }), null)
})

check('seccomp: a resource belongs to the workload of its reference in its own namespace', async () => {
  const w = await s.workload({})
  ok(await s.putCr(w.ns, 'other-kind', crBody(w.name, { kind: 'StatefulSet' })))
  ok(await s.putCr(w.ns, 'other-name', crBody('api')))
  ok(await s.putCr(unique('elsewhere'), 'other-ns', crBody(w.name)))
  ok(await s.putCr(w.ns, 'no-ref', crBody(w.name, { spec: { workloadRef: undefined } })))
  ok(await s.putCr(w.ns, 'blank-ref', crBody(w.name, { spec: { workloadRef: { kind: ' ', name: w.name } } })))
  const e = await s.entry(w)
  assert.equal(e.crCount, 0)
  assert.equal(e.cr, null)
})

check('seccomp: of several resources the most recently updated is shown', async () => {
  const w = await s.workload({})
  ok(await s.putCr(w.ns, 'b', crBody(w.name)))
  ok(await s.putCr(w.ns, 'c', crBody(w.name)))
  ok(await s.putCr(w.ns, 'a', crBody(w.name)))
  let e = await s.entry(w)
  assert.equal(e.crCount, 3)
  assert.equal(e.cr.name, 'a')
  ok(await s.putCr(w.ns, 'c', crBody(w.name, { hash: 'h2' })))
  e = await s.entry(w)
  assert.equal(e.crCount, 3)
  assert.equal(e.cr.name, 'c')
  assert.equal(e.cr.hash, 'h2')
})

check('seccomp: a PUT that changes nothing writes nothing', async () => {
  const w = await s.workload({})
  ok(await s.putCr(w.ns, 'first', crBody(w.name)))
  const was = (await s.entry(w)).cr.updatedAt
  assert.equal(ok(await s.putCr(w.ns, 'first', crBody(w.name))).json.syscallCount, 1)
  assert.equal((await s.entry(w)).cr.updatedAt, was)
  ok(await s.putCr(w.ns, 'second', crBody(w.name)))
  ok(await s.putCr(w.ns, 'first', crBody(w.name)))
  assert.equal((await s.entry(w)).cr.name, 'second')
})

check('seccomp: a resource of a workload that was not observed makes no entry', async () => {
  const w = { ns: unique('unseen'), kind: 'Deployment', name: 'web' }
  ok(await s.putCr(w.ns, 'early', crBody(w.name)))
  assert.equal(await s.entry(w), undefined)
  plainly(await s.single(w), 404)
  plainly(await s.exported(w), 404)
  await s.workload(w)
  assert.equal((await s.entry(w)).cr.name, 'early')
})

check('seccomp: DELETE removes a resource once', async () => {
  const w = await withCr()
  assert.deepEqual(ok(await s.deleteCr(w.ns, w.cr)).json, { deleted: true })
  const e = await s.entry(w)
  assert.equal(e.crCount, 0)
  assert.equal(e.cr, null)
  plainly(await s.deleteCr(w.ns, w.cr), 404)
})

check('seccomp: a resource needs names that Kubernetes knows', async () => {
  for (const [ns, name] of [
    ['Upper', 'web'],
    ['ok', 'Upper'],
    ['ok', 'under_score'],
    ['ok', '-dash'],
    ['ok', 'dot.'],
    ['a b', 'web'],
  ]) {
    refused(await s.putCr(ns, name, crBody('web')), 400, `${ns}/${name}`)
  }
})

check('seccomp: drift names what is missing and what is extra, and is in sync when nothing is missing', async () => {
  const drift = async (names) =>
    (await s.entry(await withCr({ names }, undefined, ['write', 'read', 'futex']))).cr.drift
  assert.deepEqual(await drift(['read', 'openat', 'clone']), {
    missing: ['futex', 'write'],
    extra: ['clone', 'openat'],
    inSync: false,
  })
  assert.deepEqual(await drift(['read', 'write', 'futex', 'mmap', 'brk']), {
    missing: [],
    extra: ['brk', 'mmap'],
    inSync: true,
  })
})

// ---- distribution

check('seccomp: node status answers 200 with an empty body and needs a node name', async () => {
  const r = await node(unique('node'), { paths: [] })
  assert.equal(r.text, '')
  refused(await b.post('/seccomp/node-status', { paths: [] }), 400)
  refused(await s.node('   '), 400)
  refused(await s.node(''), 400)
})

check('seccomp: distribution counts the nodes that hold the file of the resource', async () => {
  const w = await withCr({ hash: 'h1' })
  const read = async () => (await s.entry(w)).cr.distribution
  await node('n-1', { paths: [] })
  assert.deepEqual(await read(), { ready: 0, total: nodes.size, state: 'Pending', present: 0 })
  await node('n-1', { paths: [w.path, 'kguardian/other/x.json'] })
  assert.deepEqual(await read(), { ready: 0, total: nodes.size, state: 'Pending', present: 1 })
  await node('n-1', { paths: [{ path: w.path, hash: 'h1' }] })
  assert.deepEqual(await read(), {
    ready: 1,
    total: nodes.size,
    state: nodes.size === 1 ? 'Ready' : 'Partial',
    present: 1,
  })
  await node('n-2', { files: [{ path: w.path, hash: 'h0' }] })
  assert.deepEqual(await read(), { ready: 1, total: nodes.size, state: 'Partial', present: 2 })
  await node('n-1', { paths: [] })
  assert.deepEqual(await read(), { ready: 0, total: nodes.size, state: 'Pending', present: 1 })
})

check('seccomp: strings, objects and files of one report are merged by path', async () => {
  const w = await withCr({ hash: 'h1' })
  const read = async () => {
    const { ready, present } = (await s.entry(w)).cr.distribution
    return [ready, present]
  }
  await node('merge', { files: [{ path: w.path, hash: 'h1' }], paths: [w.path] })
  assert.deepEqual(await read(), [1, 1])
  await node('merge', { files: [{ path: w.path }], paths: [{ path: w.path, hash: 'h1' }, w.path] })
  assert.deepEqual(await read(), [1, 1])
  await node('merge', { files: [{ path: w.path, hash: '' }], paths: [w.path] })
  assert.deepEqual(await read(), [0, 1])
})

check('seccomp: all live nodes with the right hash make the distribution Ready', async () => {
  const w = await withCr({ hash: 'h9' })
  await node('ready-1', { paths: [] })
  for (const n of nodes) await node(n, { files: [{ path: w.path, hash: 'h9' }], paths: [w.path] })
  assert.deepEqual((await s.entry(w)).cr.distribution, {
    ready: nodes.size,
    total: nodes.size,
    state: 'Ready',
    present: nodes.size,
  })
})

check('seccomp: a resource without a hash has no ready node', async () => {
  const w = await withCr({ hash: '' })
  await node('blank', { files: [{ path: w.path, hash: '' }] })
  const { cr } = await s.entry(w)
  assert.equal(cr.hash, '')
  assert.equal(cr.distribution.ready, 0)
  assert.equal(cr.distribution.present, 1)
})

check('seccomp: a stale node counts toward none of the three', async () => {
  const { o, t } = await another({ SECCOMP_PROFILES_CACHE_TTL_SECS: '0', SECCOMP_NODE_STATUS_STALE_SECS: '3' })
  const w = await t.workload({})
  ok(await t.putCr(w.ns, 'web', crBody(w.name)))
  const report = async () => ok(await t.node('n-1', { files: [{ path: `kguardian/${w.ns}/web.json`, hash: 'h1' }] }))
  const read = async () => (await t.entry(w)).cr.distribution
  await eventually(
    async () => {
      await report()
      return (await read()).ready === 1
    },
    { what: 'a fresh node to count' },
  )
  await eventually(async () => (await read()).total === 0, { what: 'the node to go stale', timeoutMs: 25_000 })
  assert.deepEqual(await read(), { ready: 0, total: 0, state: 'Pending', present: 0 })
  await eventually(
    async () => {
      await report()
      return (await read()).ready === 1
    },
    { what: 'the node to count again' },
  )
  await o.stop()
})

// ---- the cache

const HITS = 'broker_seccomp_profiles_cache_hits_total'
const MISSES = 'broker_seccomp_profiles_cache_misses_total'

check('seccomp: a cache time of 0 rebuilds the list for each request', async () => {
  const [hits, misses] = [await metric(b, HITS), await metric(b, MISSES)]
  const w = await s.workload({})
  assert.ok(await s.entry(w))
  await s.syscalls(calls(w.pods[0].name, ['brk']))
  assert.equal((await s.entry(w)).syscallCount, 3)
  assert.equal(await metric(b, HITS), hits)
  assert.equal(await metric(b, MISSES), misses + 2)
})

check('seccomp: by default callers inside the window get identical bytes', async () => {
  const { o, t } = await another({})
  const w = await t.workload({})
  const first = ok(await o.get('/seccomp/profiles'))
  const [hits, misses] = [await metric(o, HITS), await metric(o, MISSES)]
  assert.ok(misses >= 1)
  const x = await t.workload({})
  assert.equal((await t.profile(x)).syscallCount, 2, 'the single route is never cached')
  const second = ok(await o.get('/seccomp/profiles'))
  assert.equal(second.text, first.text)
  assert.equal(await metric(o, HITS), hits + 1)
  assert.equal(await metric(o, MISSES), misses)
  assert.ok(first.json.some((e) => e.namespace === w.ns))
  await eventually(() => t.entry(x), { what: 'the list to be rebuilt', timeoutMs: 30_000 })
  await o.stop()
})

// ---- the single profile

check('seccomp: the single route adds the profile to the same summary', async () => {
  const w = await withCr({}, undefined, ['write', 'read'])
  const p = await s.profile(w)
  inOrder(p, [...ENTRY_KEYS, 'denialsReason', 'denialsReasonDetail', 'profile'])
  const { profile, denialsReason, denialsReasonDetail: _, ...summary } = p
  assert.equal(denialsReason === null, summary.denials !== null)
  assert.deepEqual(summary, await s.entry(w))
  assert.deepEqual(profile, {
    defaultAction: 'SCMP_ACT_LOG',
    architectures: ['SCMP_ARCH_X86_64'],
    syscalls: [allow('read', 'write')],
  })
  inOrder(profile, ['defaultAction', 'architectures', 'syscalls'], 'profile')
})

check('seccomp: the single route answers 404 in plain text for a workload that was not observed', async () => {
  plainly(await s.single({ ns: 'nowhere', name: 'nothing' }), 404)
  const w = await s.workload({})
  plainly(await s.single({ ...w, kind: 'StatefulSet' }), 404)
})

check('seccomp: the profile file is served under its current hash only', async () => {
  const w = await s.workload({})
  const p = await s.profile(w)
  const file = (hash) => b.get(`/seccomp/profile-file/${w.ns}/${w.kind}/${w.name}/${hash}`)
  assert.deepEqual(ok(await file(p.hash)).json, p.profile)
  refused(await file('0000000000000000'), 404)
  await s.syscalls(calls(w.pods[0].name, ['brk']))
  refused(await file(p.hash), 404)
  refused(await b.get(`/seccomp/profile-file/${w.ns}/Deployment/unknown/${p.hash}`), 404)
})
