import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startApp, TOKENS } from '../support/app.ts'
import { podPost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import {
  forgetSeccomp,
  profilePath,
  storeNodes,
  storePods,
  storeResources,
  storeWatchers,
  storeWorkloads,
} from '../support/seccomp.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const { sql } = app
const web = { namespace: 'shop', kind: 'Deployment', name: 'web' }
/** 64 contributors and 800 pairs (docs/contract.md#seccomp-profiles). */
const CHARGED_KIB = 64 * 4 + 800 / 2

beforeEach(async () => {
  for (const one of [app, guarded]) await forgetSeccomp(one.sql)
  app.deps.profiles.list.forget()
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: the entry of the list, with the observed set as a logging profile', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['write', 'read'], arches: ['x86_64', 'aarch64', 's390x'] }])
  await storePods(sql, [{ name: 'p', of: web, level: 'high' }])
  await storeResources(sql, [
    { namespace: 'shop', name: 'cr', kind: 'Deployment', workload: 'web', names: ['read'], hash: 'h' },
  ])
  await storeNodes(sql, [{ name: 'n', files: { 'kguardian/shop/cr.json': 'h' } }])
  await storeWatchers(sql, [{ name: 'n' }])
  const [entry] = (await app.get('/seccomp/profiles')).json
  const profile = {
    defaultAction: 'SCMP_ACT_LOG',
    architectures: ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_X86_64'],
    syscalls: [{ names: ['read', 'write'], action: 'SCMP_ACT_ALLOW' }],
  }
  const known = { denialsReason: null, denialsReasonDetail: null }
  assert.equal((await app.get(profilePath(web))).text, JSON.stringify({ ...entry, ...known, profile }))
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: a set without names and architectures has empty lists', async () => {
  await storeWorkloads(sql, [{ ...web, names: [], arches: [] }])
  assert.deepEqual((await app.get(profilePath(web))).json.profile, {
    defaultAction: 'SCMP_ACT_LOG',
    architectures: [],
    syscalls: [],
  })
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: folder and staleness come from the settings; a staleness of 0 means no limit', async () => {
  const elsewhere = await startApp({ SECCOMP_PROFILE_DIR: 'other/dir', SECCOMP_NODE_STATUS_STALE_SECS: '0' })
  const files = { 'other/dir/shop/cr.json': 'h', 'kguardian/shop/cr.json': 'h' }
  for (const [on, directory, live] of [
    [elsewhere, 'other/dir', 1],
    [app, 'kguardian', 0],
  ] as const) {
    await storeWorkloads(on.sql, [{ ...web, names: ['read'] }])
    await storeResources(on.sql, [
      { namespace: 'shop', name: 'cr', kind: 'Deployment', workload: 'web', names: ['read'], hash: 'h' },
    ])
    await storeNodes(on.sql, [{ name: 'n', files, secondsAgo: 1e8 }])
    const { profile: _, denialsReason, denialsReasonDetail, ...entry } = (await on.get(profilePath(web))).json
    assert.deepEqual([denialsReason, denialsReasonDetail], ['no_node_watching', null])
    assert.equal(entry.cr.localhostProfile, `${directory}/shop/cr.json`)
    assert.deepEqual(entry.cr.distribution, {
      ready: live,
      total: live,
      state: live === 0 ? 'Pending' : 'Ready',
      present: live,
    })
    assert.deepEqual([entry], (await on.get('/seccomp/profiles')).json)
  }
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: this answer is never cached, unlike the list', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  assert.equal((await app.get('/seccomp/profiles')).json[0].syscallCount, 1)
  assert.equal((await app.get(profilePath(web))).json.syscallCount, 1)
  await storeWorkloads(sql, [{ ...web, names: ['read', 'write'] }])
  assert.equal((await app.get(profilePath(web))).json.syscallCount, 2)
  assert.equal((await app.get('/seccomp/profiles')).json[0].syscallCount, 1)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: simultaneous requests each get the workload they asked for', async () => {
  const names = Array.from({ length: 30 }, (_, i) => ({ ...web, name: `w-${i}`, names: [`call_${i}`] }))
  await storeWorkloads(sql, names)
  const asked = Array.from({ length: 200 }, (_, i) => `w-${(i * 7) % 40}`)
  const answers = await Promise.all(asked.map((name) => app.get(profilePath({ ...web, name }))))
  for (const [i, name] of asked.entries()) {
    const { status, json } = answers[i]!
    const number = Number(name.slice(2))
    assert.equal(status, number < 30 ? 200 : 404)
    if (status === 200) assert.deepEqual([json.name, json.profile.syscalls[0].names], [name, [`call_${number}`]])
  }
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: a path of any characters', async () => {
  const odd = { namespace: 'a/b', kind: 'K "q"', name: '%2f\\u0001 \u{1f600}' }
  await storeWorkloads(sql, [{ ...odd, names: ['read'] }])
  const { json } = await app.get(profilePath(odd))
  assert.deepEqual([json.namespace, json.kind, json.name], [odd.namespace, odd.kind, odd.name])
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: a long answer is compressed on request', async () => {
  await storeWorkloads(sql, [{ ...web, names: Array.from({ length: 1_024 }, (_, i) => `call_number_${i}`) }])
  const plain = await app.get(profilePath(web))
  const packed = await app.app.request(profilePath(web), { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(packed.headers.get('content-encoding'), 'gzip')
  assert.equal(gunzipSync(Buffer.from(await packed.arrayBuffer())).toString(), plain.text)
})

const naive = (minutesAgo: number) => new Date(Date.now() - minutesAgo * 60_000).toISOString().slice(0, -1)
const digestOf = (n: number) => `sha256:${String(n).padStart(64, '0')}`
async function runImage(pod_name: string, digest: number | null, minutesAgo: number) {
  const container = {
    name: 'c',
    kind: 'regular',
    image: 'i',
    digest: digest && digestOf(digest),
    digest_kind: 'repo',
    state: 'running',
  }
  const owner = { pod_namespace: 'shop', workload_kind: 'Deployment', workload_name: 'web', capture_level: 'full' }
  const post = podPost({ pod_name, ...owner, time_stamp: naive(minutesAgo), containers: [container] })
  assert.equal((await app.post('/pod/spec', post)).status, 200)
}
async function sendAt(pod_name: string, syscalls: string[], time_stamp: string) {
  assert.equal(
    (await app.post('/pod/syscalls', [{ pod_name, pod_namespace: '', syscalls, arch: 'x86_64', time_stamp }])).status,
    200,
  )
}
const detail = async () => (await app.get(`${profilePath(web)}?detail=true`)).json.detail

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: the detail has when each syscall was first and last seen, and in which images', async () => {
  const times = [50, 40, 38, 30, 20].map(naive)
  await runImage('one', 1, 60)
  await sendAt('one', ['read', 'write', '435'], times[0]!)
  await sendAt('one', ['read'], times[1]!)
  await sendAt('one', ['read'], times[2]!)
  await runImage('two', 2, 35)
  await sendAt('two', ['read', 'brk'], times[3]!)
  const [first, second, , fourth] = times
  assert.deepEqual(await detail(), {
    resetAt: null,
    syscalls: [
      { name: '435', firstSeen: first, lastSeen: first, imageDigests: [digestOf(1)] },
      { name: 'brk', firstSeen: fourth, lastSeen: fourth, imageDigests: [digestOf(2)] },
      { name: 'read', firstSeen: first, lastSeen: fourth, imageDigests: [digestOf(1), digestOf(2)] },
      { name: 'write', firstSeen: first, lastSeen: first, imageDigests: [digestOf(1)] },
    ],
  })
  assert.notEqual(second, fourth)
  // Sent late: it was seen earlier than was known.
  await sendAt('one', ['write', 'openat'], naive(55))
  const { syscalls } = await detail()
  assert.deepEqual(
    syscalls.map(({ name, firstSeen }: { name: string; firstSeen: string }) => [name, firstSeen < first!]),
    [
      ['435', false],
      ['brk', false],
      ['openat', true],
      ['read', false],
      ['write', true],
    ],
  )
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: times are updated every few minutes at most, and nothing is written until then', async () => {
  await runImage('one', 1, 60)
  await sendAt('one', ['read'], naive(50))
  const version = async () => (await sql`select xmin::text, ctid::text from workload_syscalls_seen`)[0]
  const before = await version()
  await sendAt('one', ['read'], naive(46))
  assert.deepEqual(await version(), before)
  const time = naive(44)
  await sendAt('one', ['read'], time)
  assert.equal((await detail()).syscalls[0].lastSeen, time)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: of many images the last seen ones are stored', async () => {
  for (let n = 1; n <= 10; n++) {
    await runImage(`pod-${n}`, n, 60)
    await sendAt(`pod-${n}`, ['read', `s${n}`], naive(50 - n))
  }
  const { syscalls } = await detail()
  const digestsOf = (wanted: string) => syscalls.find(({ name }: { name: string }) => name === wanted).imageDigests
  assert.deepEqual(digestsOf('read'), [3, 4, 5, 6, 7, 8, 9, 10].map(digestOf))
  assert.deepEqual(
    [digestsOf('s1'), digestsOf('s2'), digestsOf('s3'), digestsOf('s10')],
    [[], [], [digestOf(3)], [digestOf(10)]],
  )
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: sets from before times were stored have null times', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read', 'write'] }])
  const unknown = { firstSeen: null, lastSeen: null, imageDigests: [] }
  assert.deepEqual((await detail()).syscalls, [
    { name: 'read', ...unknown },
    { name: 'write', ...unknown },
  ])
  await runImage('one', null, 60)
  const time = naive(50)
  await sendAt('one', ['read', 'brk'], time)
  assert.deepEqual((await detail()).syscalls, [
    { name: 'brk', firstSeen: time, lastSeen: time, imageDigests: [] },
    { name: 'read', ...unknown, lastSeen: time },
    { name: 'write', ...unknown },
  ])
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 200: times are not in the future, and there is no detail unless requested', async () => {
  await runImage('one', 1, 1)
  await sendAt('one', ['read'], naive(-60))
  const { syscalls } = await detail()
  assert.ok(syscalls[0].lastSeen <= naive(0))
  for (const query of ['', '?detail=', '?detail=false'])
    assert.equal('detail' in (await app.get(`${profilePath(web)}${query}`)).json, false)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 400: an invalid detail', async () => {
  const { status, text } = await app.get(`${profilePath(web)}?detail=maybe`)
  assert.equal(status, 400)
  assert.match(text, /^Query deserialize error: detail: /)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 404: a workload without observed syscalls, in plain text', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  await storePods(sql, [{ name: 'p', of: { ...web, name: 'api' } }])
  for (const other of [
    { ...web, name: 'api' },
    { ...web, kind: 'StatefulSet' },
    { ...web, kind: 'deployment' },
    { ...web, namespace: 'other' },
  ]) {
    const answer = await app.get(profilePath(other))
    assert.deepEqual([answer.status, answer.text], [404, 'there is no seccomp profile for that workload'])
    assert.match(answer.headers.get('content-type')!, /^text\/plain/)
  }
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 400: U+0000 in the path', async () => {
  assert.equal((await app.get('/seccomp/profiles/a/b/%00')).status, 400)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 401: without a token', async () => {
  assertUnauthorized(await guarded.get(profilePath(web)))
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 503: shed when the read budget is spent', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - CHARGED_KIB + 1)
  assertShed(await guarded.get(profilePath(web), { token }), CHARGED_KIB, budget.totalKib)
  release()
  assert.equal((await guarded.get(profilePath(web), { token })).status, 404)
})

test('GET /seccomp/profiles/{namespace}/{kind}/{name} 503: a table is locked for longer than a statement may take', async () => {
  await storeWorkloads(guarded.sql, [{ ...web, names: ['read'] }])
  await storePods(guarded.sql, [{ name: 'p', of: web }])
  for (const table of [
    'workload_syscalls',
    'syscall_contribution',
    'unattributed_syscalls',
    'seccomp_cr',
    'seccomp_node',
    'seccomp_denial',
    'seccomp_denial_node',
  ])
    await whileRefused(guarded.sql, table, async () =>
      assertDatabaseBusy(await guarded.get(profilePath(web), { token })),
    )
  assert.equal((await guarded.get(profilePath(web), { token })).status, 200)
})
