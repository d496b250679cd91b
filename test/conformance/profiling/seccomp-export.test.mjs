// Export of a seccomp profile: manifest, parameters, capture headers, the gate for partial capture, staged edits.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  allow,
  crBody,
  inOrder,
  ok,
  plainly,
  profiling,
  refused,
  unique,
  workloadPath,
  yaml,
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

const LEVEL = 'x-kguardian-capture-level'
const COMPLETE = 'x-kguardian-capture-complete'
const ENFORCING = ['SCMP_ACT_ERRNO', 'SCMP_ACT_KILL', 'SCMP_ACT_KILL_PROCESS']
const full = (over = {}) => s.workload({ pods: [{ names: ['write', 'read', 'futex'] }], ...over })
const partial = (level = 'medium') => s.workload({ pods: [{ names: ['read'] }, { names: ['write'], level }] })
const comments = (text) => text.split('\n').filter((l) => l.startsWith('#'))
const type = (r) => (r.headers.get('content-type') ?? '').split(';')[0].trim()
const names = (r) => {
  const rules = yaml(r.text).spec.syscalls
  assert.ok(rules.length <= 1)
  return rules.length ? rules[0].names : []
}

// ---- the manifest

check('seccomp-export: the manifest of a complete workload', async () => {
  const w = await full()
  const r = ok(await s.exported(w))
  assert.equal(type(r), 'application/yaml')
  const m = yaml(r.text)
  assert.deepEqual(m, {
    apiVersion: 'kguardian.dev/v1alpha1',
    kind: 'SeccompProfile',
    metadata: {
      name: 'deployment-web',
      namespace: w.ns,
      annotations: { 'kguardian.dev/capture-complete': 'true', 'kguardian.dev/capture-level': 'full' },
    },
    spec: {
      defaultAction: 'SCMP_ACT_LOG',
      architectures: ['SCMP_ARCH_X86_64'],
      syscalls: [allow('futex', 'read', 'write')],
      workloadRef: { kind: 'Deployment', name: 'web' },
    },
  })
  inOrder(m, ['apiVersion', 'kind', 'metadata', 'spec'])
  inOrder(m.metadata, ['name', 'namespace', 'annotations'], 'metadata')
  inOrder(m.metadata.annotations, ['kguardian.dev/capture-complete', 'kguardian.dev/capture-level'], 'annotations')
  inOrder(m.spec, ['defaultAction', 'architectures', 'syscalls', 'workloadRef'], 'spec')
  inOrder(m.spec.syscalls[0], ['names', 'action'], 'rule')
})

check('seccomp-export: the manifest opens with comments that name the workload', async () => {
  const w = await full()
  const { text } = ok(await s.exported(w))
  assert.ok(text.startsWith('#'))
  assert.ok(
    comments(text).some((l) => l.includes(`${w.ns} Deployment/web`)),
    text.slice(0, 500),
  )
})

check('seccomp-export: capture headers are on every answer', async () => {
  const w = await full()
  const good = ok(await s.exported(w))
  assert.equal(good.headers.get(LEVEL), 'full')
  assert.equal(good.headers.get(COMPLETE), 'true')
  const p = await partial('low')
  for (const r of [ok(await s.exported(p)), await s.exported(p, { defaultAction: 'SCMP_ACT_ERRNO' })]) {
    assert.equal(r.headers.get(LEVEL), 'low', `HTTP ${r.status}`)
    assert.equal(r.headers.get(COMPLETE), 'false', `HTTP ${r.status}`)
  }
})

check('seccomp-export: a partial capture is annotated and warned about', async () => {
  const w = await partial('high')
  const r = ok(await s.exported(w))
  const { annotations } = yaml(r.text).metadata
  inOrder(
    annotations,
    ['kguardian.dev/capture-complete', 'kguardian.dev/capture-level', 'kguardian.dev/capture-warning'],
    'annotations',
  )
  assert.equal(annotations['kguardian.dev/capture-complete'], 'false')
  assert.equal(annotations['kguardian.dev/capture-level'], 'high')
  assert.equal(typeof annotations['kguardian.dev/capture-warning'], 'string')
  assert.ok(annotations['kguardian.dev/capture-warning'].trim().length > 0)
  const clean = ok(await s.exported(await full()))
  assert.ok(comments(r.text).length > comments(clean.text).length, 'the header gains a warning comment')
})

check('seccomp-export: the capture-complete annotation is text, in quotes', async () => {
  assert.match(ok(await s.exported(await full())).text, /^\s+kguardian\.dev\/capture-complete: (["'])true\1\s*$/m)
  assert.match(ok(await s.exported(await partial())).text, /^\s+kguardian\.dev\/capture-complete: (["'])false\1\s*$/m)
})

check('seccomp-export: architectures are left out when none were observed', async () => {
  const w = await s.workload({ pods: [{ names: ['read'], arch: 'riscv64' }] })
  const m = yaml(ok(await s.exported(w)).text)
  inOrder(m.spec, ['defaultAction', 'syscalls', 'workloadRef'], 'spec')
})

check('seccomp-export: both architectures are named', async () => {
  const w = await s.workload({ pods: [{ names: ['read'] }, { names: ['read'], arch: 'aarch64' }] })
  assert.deepEqual(yaml(ok(await s.exported(w)).text).spec.architectures, ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_X86_64'])
})

check('seccomp-export: a mirrored resource does not change the export', async () => {
  const w = await full()
  const was = ok(await s.exported(w)).text
  ok(await s.putCr(w.ns, 'applied', crBody(w.name)))
  assert.equal(ok(await s.exported(w)).text, was)
})

check('seccomp-export: a workload that was not observed is a 404 in plain text', async () => {
  plainly(await s.exported({ ns: 'nowhere', name: 'nothing' }), 404)
  plainly(await s.edited({ ns: 'nowhere', name: 'nothing' }, {}), 404)
})

// ---- parameters

check('seccomp-export: format json is the same manifest as JSON', async () => {
  for (const w of [await full(), await partial()]) {
    const r = ok(await s.exported(w, { format: 'json' }))
    assert.equal(type(r), 'application/json')
    assert.deepEqual(r.json, yaml(ok(await s.exported(w)).text))
    inOrder(r.json, ['apiVersion', 'kind', 'metadata', 'spec'])
    assert.ok(r.headers.get(LEVEL))
  }
})

check('seccomp-export: yaml, yml and blank are YAML, other formats are refused', async () => {
  const w = await full()
  for (const format of ['yaml', 'yml', ''])
    assert.equal(type(ok(await s.exported(w, { format }))), 'application/yaml', format)
  for (const format of ['xml', 'toml', 'jsonp']) refused(await s.exported(w, { format }), 400, format)
})

check('seccomp-export: the name may be overridden with a DNS subdomain', async () => {
  const w = await full()
  assert.equal(yaml(ok(await s.exported(w, { name: 'my-profile.v2' })).text).metadata.name, 'my-profile.v2')
  for (const name of ['Upper', 'under_score', '-a', 'a-', '.a', 'a b', 'a'.repeat(254)])
    refused(await s.exported(w, { name }), 400, name)
})

check('seccomp-export: the four actions are allowed, others are refused', async () => {
  const w = await full()
  for (const defaultAction of ['SCMP_ACT_LOG', ...ENFORCING]) {
    assert.equal(yaml(ok(await s.exported(w, { defaultAction })).text).spec.defaultAction, defaultAction)
  }
  assert.equal(yaml(ok(await s.exported(w, { defaultAction: '' })).text).spec.defaultAction, 'SCMP_ACT_LOG')
  for (const defaultAction of ['SCMP_ACT_ALLOW', 'SCMP_ACT_TRACE', 'scmp_act_log', 'ERRNO'])
    refused(await s.exported(w, { defaultAction }), 400, defaultAction)
})

// ---- the gate

check('seccomp-export: an enforcing export of a partial capture is refused with 409 in plain text', async () => {
  const w = await partial()
  for (const defaultAction of ENFORCING) {
    plainly(await s.exported(w, { defaultAction }), 409, defaultAction)
    plainly(await s.edited(w, { defaultAction }), 409, defaultAction)
  }
})

check('seccomp-export: the refusal says what was asked, why the capture is partial and what may be done', async () => {
  const w = await partial('low')
  const { text } = plainly(await s.exported(w, { defaultAction: 'SCMP_ACT_KILL_PROCESS' }), 409)
  for (const words of [/SCMP_ACT_KILL_PROCESS/, /\blow\b/, /SCMP_ACT_LOG/, /acknowledge/i]) assert.match(text, words)
  assert.ok(text.includes(w.pods[1].name), 'the pod that is below full')
})

check('seccomp-export: the logging action is never refused', async () => {
  for (const level of ['high', 'medium', 'low', 'custom', undefined])
    ok(await s.exported(await partial(level), { defaultAction: 'SCMP_ACT_LOG' }))
})

check('seccomp-export: a custom capture is partial', async () => {
  const w = await s.workload({ pods: [{ names: ['read'], level: 'custom' }] })
  const r = await s.exported(w, { defaultAction: 'SCMP_ACT_KILL' })
  plainly(r, 409)
  assert.equal(r.headers.get(LEVEL), 'custom')
})

check('seccomp-export: an acknowledged partial export is served with its warning', async () => {
  const w = await partial()
  for (const acknowledgePartial of ['true', '1', 'yes', 'on', 'TRUE', 'Yes']) {
    const r = ok(await s.exported(w, { defaultAction: 'SCMP_ACT_ERRNO', acknowledgePartial }))
    const m = yaml(r.text)
    assert.equal(m.spec.defaultAction, 'SCMP_ACT_ERRNO')
    assert.ok(m.metadata.annotations['kguardian.dev/capture-warning'])
    assert.equal(r.headers.get(COMPLETE), 'false')
  }
  for (const acknowledgePartial of ['false', '0', 'no', 'maybe', ''])
    refused(await s.exported(w, { defaultAction: 'SCMP_ACT_ERRNO', acknowledgePartial }), 409, acknowledgePartial)
})

check('seccomp-export: in a body the acknowledgement is a boolean or a string, not a number', async () => {
  const w = await partial()
  const ask = (acknowledgePartial) => s.edited(w, { defaultAction: 'SCMP_ACT_ERRNO', acknowledgePartial })
  for (const yes of [true, 'true', 'ON']) ok(await ask(yes))
  for (const no of [false, 'false', 'nope', null]) refused(await ask(no), 409, String(no))
  refused(await ask(1), 400)
})

// ---- staged edits

check('seccomp-export: an empty body is the same document as the GET', async () => {
  const w = await full()
  const r = ok(await s.edited(w, {}))
  assert.equal(type(r), 'application/yaml')
  assert.deepEqual(yaml(r.text), yaml(ok(await s.exported(w)).text))
  assert.equal(r.headers.get(LEVEL), 'full')
})

check('seccomp-export: the exported set is the observed set plus add minus remove, and the union stays', async () => {
  const w = await full()
  const was = await s.profile(w)
  const r = ok(await s.edited(w, { add: ['openat', 'read', 'brk'], remove: ['futex', 'ptrace'] }))
  assert.deepEqual(names(r), ['brk', 'openat', 'read', 'write'])
  assert.deepEqual(await s.profile(w), was)
  assert.deepEqual(names(ok(await s.exported(w))), ['futex', 'read', 'write'])
})

check('seccomp-export: edits are named in a comment', async () => {
  const w = await full()
  const edits = comments(ok(await s.edited(w, { add: ['openat'], remove: ['futex'] })).text).find((l) => /\+\[/.test(l))
  assert.match(edits ?? '', /\+\[[^\]]*openat[^\]]*\].*-\[[^\]]*futex[^\]]*\]/)
  assert.ok(!comments(ok(await s.edited(w, {})).text).some((l) => /\+\[/.test(l)), 'no comment without edits')
})

check('seccomp-export: removing everything leaves an empty list', async () => {
  const w = await full()
  for (const format of ['yaml', 'json']) {
    const r = ok(await s.edited(w, { format, remove: ['read', 'write', 'futex'] }))
    assert.deepEqual((r.json ?? yaml(r.text)).spec.syscalls, [])
  }
})

check('seccomp-export: a body takes name, action and format too', async () => {
  const w = await full()
  const r = ok(
    await s.edited(w, { name: 'edited', defaultAction: 'SCMP_ACT_KILL_PROCESS', format: 'json', add: ['brk'] }),
  )
  assert.equal(type(r), 'application/json')
  assert.equal(r.json.metadata.name, 'edited')
  assert.equal(r.json.spec.defaultAction, 'SCMP_ACT_KILL_PROCESS')
  assert.deepEqual(r.json.spec.syscalls, [allow('brk', 'futex', 'read', 'write')])
})

check('seccomp-export: edits with ill-formed names, too many names or a name in both lists are refused', async () => {
  const w = await full()
  for (const name of ['', 'Read', '9lives', '_x', 'a-b', 'a b', 'a.b', `a${'b'.repeat(64)}`]) {
    refused(await s.edited(w, { add: [name] }), 400, `add ${name}`)
    refused(await s.edited(w, { remove: [name] }), 400, `remove ${name}`)
  }
  const many = Array.from({ length: 513 }, (_, i) => `sys_${i}`)
  refused(await s.edited(w, { add: many }), 400, '513 added')
  refused(await s.edited(w, { remove: many }), 400, '513 removed')
  refused(await s.edited(w, { add: ['brk', 'read'], remove: ['brk'] }), 400, 'in both')
  refused(await s.edited(w, { add: 'brk' }), 400, 'add is a list')
  refused(await s.edited(w, { format: 'xml' }), 400, 'format')
  refused(await s.edited(w, { name: 'Upper' }), 400, 'name')
  refused(await s.edited(w, { defaultAction: 'SCMP_ACT_ALLOW' }), 400, 'action')
})

check('seccomp-export: a body that is not a JSON object is refused', async () => {
  const w = await full()
  const send = (body) =>
    b.request('POST', `${workloadPath(w.ns, w.kind, w.name)}/export`, {
      raw: true,
      body,
      headers: { 'content-type': 'application/json' },
    })
  for (const body of ['{"add":', '[]', '"read"']) refused(await send(body), 400, body)
})

// ---- settings

check('seccomp-export: the annotation prefix is a setting', async () => {
  const o = await startBroker({
    env: {
      SECCOMP_PROFILES_CACHE_TTL_SECS: '0',
      ANNOTATION_PREFIX: 'telemetry.example.org',
      SECCOMP_PROFILE_DIR: 'profiles',
    },
  })
  cleanups.push(() => o.stop())
  const t = profiling(o)
  const w = await t.workload({ ns: unique('prefix'), pods: [{ names: ['read'], level: 'low' }] })
  const m = yaml(ok(await t.exported(w)).text)
  assert.equal(m.apiVersion, 'telemetry.example.org/v1alpha1')
  inOrder(
    m.metadata.annotations,
    ['capture-complete', 'capture-level', 'capture-warning'].map((k) => `telemetry.example.org/${k}`),
    'annotations',
  )
  assert.equal(
    (await t.profile(w)).recommendedSnippet.seccompProfile.localhostProfile,
    `profiles/${w.ns}/deployment-web.json`,
  )
  await o.stop()
})
