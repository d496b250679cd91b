import assert from 'node:assert/strict'
import http from 'node:http'
import { beforeEach, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { close, listen } from '../../lib/http/server/listen.ts'
import type { EntryRow } from '../../lib/seccomp/entry.ts'
import { LEVELS } from '../../lib/seccomp/index.ts'
import { writtenList } from '../../lib/seccomp/profile-list.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked, whileRefused } from '../support/routes.ts'
import {
  byBytes,
  forgetSeccomp,
  type StoredResource,
  storeNodes,
  storePods,
  storeResources,
  storeWatchers,
  storeWorkloads,
  type WorkloadKey,
} from '../support/seccomp.ts'
import { turnsOf } from '../support/turns.ts'
import { until } from '../support/until.ts'

const app = await startApp({ SECCOMP_PROFILES_CACHE_TTL_SECS: '0' })
const cached = await startApp({ SECCOMP_PROFILES_CACHE_TTL_SECS: '3600' }, app)
const guarded = await startApp(
  {
    ...TOKENS,
    SECCOMP_PROFILES_CACHE_TTL_SECS: '0',
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
  },
  app,
)
const elsewhere = await startApp(
  {
    SECCOMP_PROFILES_CACHE_TTL_SECS: '0',
    SECCOMP_PROFILE_DIR: 'other/dir',
    SECCOMP_NODE_STATUS_STALE_SECS: '0',
  },
  app,
)
const token = TOKENS.BROKER_TOKEN_READ
const { sql } = app

type App = typeof app
const web: WorkloadKey = { namespace: 'shop', kind: 'Deployment', name: 'web' }
const PATH = 'kguardian/shop/cr.json'
/** 10 000 pairs and 1 001 namespaces (docs/contract.md#denials). */
const DENIALS_KIB = (10_000 * 512 + 1_001 * 768) / 1_024

beforeEach(async () => {
  for (const one of [app, cached, guarded, elsewhere]) {
    await forgetSeccomp(one.sql)
    one.deps.profiles.list.forget()
  }
})

// biome-ignore lint/suspicious/noExplicitAny: an entry is what the test says it is.
async function entries(on: App = app): Promise<any[]> {
  const answer = await on.get('/seccomp/profiles')
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const onlyEntry = async (on: App = app) => {
  const all = await entries(on)
  assert.equal(all.length, 1)
  return all[0]
}
/** A value from the metrics page of the app. */
async function counters(on: App): Promise<{ hits: number; misses: number }> {
  const { text } = await on.get('/metrics')
  const of = (name: string) =>
    Number(new RegExp(`^broker_seccomp_profiles_cache_${name}_total (\\d+)$`, 'm').exec(text)?.[1])
  return { hits: of('hits'), misses: of('misses') }
}
const resource = (fields: Partial<StoredResource> = {}): StoredResource => ({
  namespace: 'shop',
  name: 'cr',
  kind: 'Deployment',
  workload: 'web',
  names: ['read', 'write'],
  hash: 'h1',
  ...fields,
})
/** The workload with a resource, as in the list. */
async function resourceShown(fields: Partial<StoredResource> = {}, names = ['read', 'write']) {
  await forgetSeccomp(sql)
  await storeWorkloads(sql, [{ ...web, names }])
  await storeResources(sql, [resource(fields)])
  return (await onlyEntry()).cr
}

// ---------------------------------------------------------------- entries

test('GET /seccomp/profiles 200: an empty array before anything was observed', async () => {
  await storePods(sql, [{ name: 'p', of: web }])
  await storeResources(sql, [resource()])
  assert.equal((await app.get('/seccomp/profiles')).text, '[]')
})

test('GET /seccomp/profiles 200: a whole entry, its keys in wire order', async () => {
  await storeWorkloads(sql, [
    { ...web, names: ['write', 'read', 'futex'], arches: ['x86_64', 'riscv64', 'aarch64'], hash: '00c0ffee00c0ffee' },
  ])
  await storePods(sql, [
    { name: 'web-1', of: web },
    { name: 'web-2', of: web, level: 'low' },
  ])
  await storeResources(sql, [resource({ names: ['read', 'write', 'brk'], ready: 1, total: 2, state: 'Partial' })])
  await storeNodes(sql, [
    { name: 'n1', files: { [PATH]: 'h1' } },
    { name: 'n2', files: { [PATH]: 'old' } },
    { name: 'n3', files: {} },
  ])
  await storeWatchers(sql, [{ name: 'n1' }])
  const expected = [
    {
      namespace: 'shop',
      kind: 'Deployment',
      name: 'web',
      hash: '00c0ffee00c0ffee',
      syscallCount: 3,
      architectures: ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_X86_64'],
      updatedAt: '2026-05-01T10:00:00',
      capture: {
        level: 'low',
        complete: false,
        pods: [
          { name: 'web-2', level: 'low' },
          { name: 'web-1', level: 'full' },
        ],
        more: 0,
        incomplete: 1,
      },
      captureComplete: false,
      suggestedName: 'deployment-web',
      recommendedSnippet: { seccompProfile: { type: 'Localhost', localhostProfile: PATH } },
      crCount: 1,
      cr: {
        name: 'cr',
        defaultAction: 'SCMP_ACT_ERRNO',
        hash: 'h1',
        syscallCount: 3,
        architectures: ['SCMP_ARCH_X86_64'],
        localhostProfile: PATH,
        distribution: { ready: 1, total: 3, state: 'Partial', present: 2 },
        statusDistribution: { ready: 1, total: 2, state: 'Partial' },
        drift: { missing: ['futex'], extra: ['brk'], inSync: false },
        updatedAt: '2026-05-01T10:00:00',
      },
      denials: { total: 0, syscalls: [], actions: [], lastSeen: null },
    },
  ]
  assert.equal((await app.get('/seccomp/profiles')).text, JSON.stringify(expected))
})

test('GET /seccomp/profiles 200: in the order of namespace, kind and name by bytes', async () => {
  const keys = [
    ['b', 'Deployment', 'a'],
    ['B', 'Deployment', 'a'],
    ['a', 'StatefulSet', 'a'],
    ['a', 'Deployment', 'b'],
    ['a', 'Deployment', '\u{ff5e}'],
    ['a', 'Deployment', '\u{1f600}'],
    ['a', 'Deployment', 'a-b'],
    ['a', 'Deployment', 'a.b'],
    ['a b', 'Job', 'a'],
  ]
  await storeWorkloads(
    sql,
    keys.map(([namespace, kind, name]) => ({ namespace: namespace!, kind: kind!, name: name!, names: ['read'] })),
  )
  const shown = (await entries()).map((one) => [one.namespace, one.kind, one.name].join('\0'))
  assert.deepEqual(shown, byBytes(keys.map((key) => key.join('\0'))))
})

test('GET /seccomp/profiles 200: times have three or six digits of a fraction, as few as are needed', async () => {
  for (const [updatedAt, shown] of [
    ['2026-05-01T10:00:00.5', '2026-05-01T10:00:00.500'],
    ['2026-05-01T10:00:00.123456', '2026-05-01T10:00:00.123456'],
  ] as const) {
    await storeWorkloads(sql, [{ ...web, names: ['read'], updatedAt }])
    assert.equal((await onlyEntry()).updatedAt, shown)
  }
})

test('GET /seccomp/profiles 200: the capture of a workload is that of its lowest pod; pods without syscalls and of other workloads do not count', async () => {
  const levels = ['full', 'custom', 'low', 'high', 'medium', null, 'ultra']
  await storeWorkloads(sql, [
    { ...web, names: ['read'] },
    { ...web, kind: 'StatefulSet', names: ['read'] },
  ])
  await storePods(sql, [
    ...levels.map((level, i) => ({ name: `p-${i}`, of: web, level, isDead: i === 1 })),
    { name: 'silent', of: web, level: 'custom', hasSyscalls: false },
    { name: 'bare', of: null, level: 'custom' },
    { name: 'other', of: { ...web, namespace: 'other' }, level: 'custom' },
  ])
  const [deployment, set] = await entries()
  assert.deepEqual(
    deployment.capture.pods.map(({ name, level }: { name: string; level: string }) => `${name} ${level}`),
    ['p-1 custom', 'p-5 unknown', 'p-6 unknown', 'p-2 low', 'p-4 medium', 'p-3 high', 'p-0 full'],
  )
  assert.deepEqual(
    [deployment.capture.level, deployment.captureComplete, deployment.capture.incomplete],
    ['custom', false, 6],
  )
  assert.deepEqual(set.capture, { level: 'unknown', complete: false, pods: [], more: 0, incomplete: 0 })
  assert.deepEqual(LEVELS.length, 6)
})

test('GET /seccomp/profiles 200: at most 20 contributors, the lowest level first, and the number of further ones', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  await storePods(
    sql,
    Array.from({ length: 23 }, (_, i) => ({
      name: `p-${String(i).padStart(2, '0')}`,
      of: web,
      level: i === 22 ? 'medium' : 'full',
    })),
  )
  const { capture } = await onlyEntry()
  assert.deepEqual([capture.pods.length, capture.more, capture.incomplete, capture.level], [20, 3, 1, 'medium'])
  assert.deepEqual([capture.pods[0].name, capture.pods[1].name, capture.pods[19].name], ['p-22', 'p-00', 'p-18'])
})

test('GET /seccomp/profiles 200: a workload is complete if it has contributors and all are full', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  await storePods(sql, [{ name: 'a', of: web, isDead: true }])
  const entry = await onlyEntry()
  assert.deepEqual([entry.capture.complete, entry.captureComplete, entry.capture.level], [true, true, 'full'])
})

// ---------------------------------------------------------------- the resource

test('GET /seccomp/profiles 200: without a resource it is null, and the snippet has the suggested name', async () => {
  await storeWorkloads(sql, [{ ...web, name: 'My_App.v2', names: ['read'] }])
  await storeResources(sql, [
    resource({ name: 'kind', kind: 'StatefulSet', workload: 'My_App.v2' }),
    resource({ name: 'name', workload: 'other' }),
    resource({ namespace: 'elsewhere', workload: 'My_App.v2' }),
    resource({ name: 'none', kind: null, workload: null }),
    resource({ name: 'half', kind: null, workload: 'My_App.v2' }),
  ])
  const { crCount, cr, suggestedName, recommendedSnippet } = await onlyEntry()
  assert.deepEqual([crCount, cr, suggestedName], [0, null, 'deployment-my-app.v2'])
  assert.equal(recommendedSnippet.seccompProfile.localhostProfile, 'kguardian/shop/deployment-my-app.v2.json')
})

test('GET /seccomp/profiles 200: of several resources the last updated one is shown, of equal ones the first by name', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  const at = (name: string, second: number) => resource({ name, updatedAt: `2026-05-01T10:00:0${second}` })
  await storeResources(sql, [at('a', 1), at('d', 2), at('c', 2), at('B', 1)])
  const entry = await onlyEntry()
  assert.deepEqual([entry.crCount, entry.cr.name], [4, 'c'])
  assert.equal(entry.recommendedSnippet.seccompProfile.localhostProfile, 'kguardian/shop/c.json')
})

test('GET /seccomp/profiles 200: drift lists both sides by bytes, and is in sync if nothing is missing', async () => {
  const drift = async (allowed: string[], observed: string[]) =>
    (await resourceShown({ names: allowed }, observed)).drift
  assert.deepEqual(await drift(['read', 'openat', 'clone'], ['write', 'read', 'futex']), {
    missing: ['futex', 'write'],
    extra: ['clone', 'openat'],
    inSync: false,
  })
  assert.deepEqual(await drift(['read', 'write', 'mmap'], ['write', 'read']), {
    missing: [],
    extra: ['mmap'],
    inSync: true,
  })
  assert.deepEqual(await drift(['read'], ['read']), { missing: [], extra: [], inSync: true })
  assert.deepEqual(await drift([], ['b', 'a']), { missing: ['a', 'b'], extra: [], inSync: false })
  assert.deepEqual(await drift(['\u{1f600}', '\u{ff5e}'], ['a']), {
    missing: ['a'],
    extra: ['\u{ff5e}', '\u{1f600}'],
    inSync: false,
  })
})

test('GET /seccomp/profiles 200: the distribution from its own status is null until it was written', async () => {
  const shown = async (fields: Partial<StoredResource>) => (await resourceShown(fields)).statusDistribution
  assert.equal(await shown({}), null)
  assert.deepEqual(await shown({ ready: 0, total: 2 }), { ready: 0, total: 2, state: 'Pending' })
  assert.deepEqual(await shown({ ready: 1, total: 0 }), { ready: 1, total: 0, state: 'Pending' })
  assert.deepEqual(await shown({ state: 'Ready' }), { ready: 0, total: 0, state: 'Ready' })
})

test('GET /seccomp/profiles 200: distribution is Pending without a ready node, Ready with all live ones ready, else Partial', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  await storeResources(sql, [resource()])
  const shown = async () => (await onlyEntry()).cr.distribution
  assert.deepEqual(await shown(), { ready: 0, total: 0, state: 'Pending', present: 0 })
  await storeNodes(sql, [{ name: 'a', files: { [PATH]: null, 'kguardian/shop/x.json': 'h1' } }])
  assert.deepEqual(await shown(), { ready: 0, total: 1, state: 'Pending', present: 1 })
  await storeNodes(sql, [{ name: 'a', files: { [PATH]: 'h1' } }])
  assert.deepEqual(await shown(), { ready: 1, total: 1, state: 'Ready', present: 1 })
  await storeNodes(sql, [{ name: 'b', files: {} }])
  assert.deepEqual(await shown(), { ready: 1, total: 2, state: 'Partial', present: 1 })
  await storeNodes(sql, [
    { name: 'b', files: { [PATH]: 'h1' } },
    { name: 'old', files: { [PATH]: 'h1' }, secondsAgo: 910 },
    { name: 'young', files: { [PATH]: 'h1' }, secondsAgo: 890 },
  ])
  assert.deepEqual(await shown(), { ready: 3, total: 3, state: 'Ready', present: 3 })
})

test('GET /seccomp/profiles 200: a resource without a hash has no ready node', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  await storeResources(sql, [resource({ hash: '' })])
  await storeNodes(sql, [{ name: 'a', files: { [PATH]: '' } }])
  assert.deepEqual((await onlyEntry()).cr.distribution, { ready: 0, total: 1, state: 'Pending', present: 1 })
})

test('GET /seccomp/profiles 200: folder and staleness come from the settings; a staleness of 0 means no limit', async () => {
  await storeWorkloads(elsewhere.sql, [{ ...web, names: ['read'] }])
  await storeResources(elsewhere.sql, [resource()])
  await storeNodes(elsewhere.sql, [
    { name: 'a', files: { 'other/dir/shop/cr.json': 'h1', [PATH]: 'h1' }, secondsAgo: 1e8 },
  ])
  const { cr } = await onlyEntry(elsewhere)
  assert.equal(cr.localhostProfile, 'other/dir/shop/cr.json')
  assert.deepEqual(cr.distribution, { ready: 1, total: 1, state: 'Ready', present: 1 })
})

// ---------------------------------------------------------------- the request

test('GET /seccomp/profiles 400: the former filter `state` is refused with any value', async () => {
  for (const query of ['state=audit', 'state=', 'state', 'state=x&limit=1']) {
    const answer = await app.get(`/seccomp/profiles?${query}`)
    assert.deepEqual(
      [answer.status, answer.text],
      [400, 'Query deserialize error: state: not known here: this route has no parameters'],
    )
  }
})

test('GET /seccomp/profiles 401: without a token', async () => {
  assertUnauthorized(await guarded.get('/seccomp/profiles'))
  assert.equal((await guarded.get('/seccomp/profiles', { token })).status, 200)
})

// ---------------------------------------------------------------- the cache

test('GET /seccomp/profiles 200: within the cache time everyone gets the same bytes, whatever was written meanwhile', async () => {
  await storeWorkloads(cached.sql, [{ ...web, names: ['read'] }])
  const before = await counters(cached)
  const first = await cached.get('/seccomp/profiles')
  await storeWorkloads(cached.sql, [{ ...web, name: 'late', names: ['read'] }])
  const second = await cached.get('/seccomp/profiles')
  assert.equal(second.text, first.text)
  assert.equal(second.json.length, 1)
  assert.deepEqual(await counters(cached), { hits: before.hits + 1, misses: before.misses + 1 })
})

test('GET /seccomp/profiles 200: with a cache time of 0 each request builds the list', async () => {
  const before = await counters(app)
  assert.equal((await entries()).length, 0)
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  assert.equal((await entries()).length, 1)
  assert.deepEqual(await counters(app), { hits: before.hits, misses: before.misses + 2 })
})

test('GET /seccomp/profiles 200: requests during a build wait for it, and there is one build', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  const before = await counters(app)
  let crowd: Promise<Awaited<ReturnType<typeof app.get>>[]> | undefined
  await whileLocked(sql, 'workload_syscalls', async () => {
    crowd = Promise.all(Array.from({ length: 50 }, () => app.get('/seccomp/profiles')))
    await until('it is being made', async () => (await counters(app)).misses === before.misses + 1)
  })
  const answers = await crowd!
  assert.ok(answers.every(({ status, text }) => status === 200 && text === answers[0]!.text))
  assert.deepEqual(await counters(app), { hits: before.hits + 49, misses: before.misses + 1 })
})

test('GET /seccomp/profiles 200: the list is cached plain and as gzip, each with its length', async () => {
  await storeWorkloads(
    cached.sql,
    Array.from({ length: 100 }, (_, i) => ({ ...web, name: `w-${i}`, names: ['read'] })),
  )
  const plain = await cached.get('/seccomp/profiles')
  const packed = await cached.app.request('/seccomp/profiles', { headers: { 'accept-encoding': 'br, gzip' } })
  const bytes = Buffer.from(await packed.arrayBuffer())
  assert.equal(packed.headers.get('content-encoding'), 'gzip')
  assert.equal(gunzipSync(bytes).toString(), plain.text)
  assert.equal(plain.headers.get('content-encoding'), null)
  for (const [headers, length] of [
    [plain.headers, Buffer.byteLength(plain.text)],
    [packed.headers, bytes.length],
  ] as const) {
    assert.equal(headers.get('content-length'), String(length))
    assert.equal(headers.get('vary'), 'accept-encoding')
    assert.equal(headers.get('content-type'), 'application/json')
  }
  const head = await cached.app.request('/seccomp/profiles', { method: 'HEAD' })
  assert.deepEqual(
    [head.status, head.headers.get('content-length'), await head.text()],
    [200, plain.headers.get('content-length'), ''],
  )
})

test('GET /seccomp/profiles 200: after the connections to the database were lost the list is built again', async () => {
  assert.equal((await entries(cached)).length, 0)
  await storeWorkloads(cached.sql, [{ ...web, names: ['read'] }])
  assert.equal((await entries(cached)).length, 0)
  const { generation } = cached.db
  await cached.sql`
    select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'broker-test' and datname = current_database()`
  await until('the loss was noticed', async () => {
    await cached.get('/pod/name/nobody')
    return cached.db.generation > generation
  })
  await until('it is made anew', async () => (await entries(cached)).length === 1)
})

test('GET /seccomp/profiles 499: a client that disconnects does not end the build for others', async () => {
  await storeWorkloads(cached.sql, [{ ...web, names: ['read'] }])
  const { budget } = cached.deps
  const { server, address } = await listen(cached.app.fetch, [{ host: '127.0.0.1', port: 0 }])
  try {
    const before = await counters(cached)
    let other: ReturnType<typeof cached.get> | undefined
    await whileLocked(cached.sql, 'workload_syscalls', async () => {
      const outgoing = http.get(`http://127.0.0.1:${address.port}/seccomp/profiles`, { agent: false })
      outgoing.on('error', () => {})
      await until('it is being made', async () => (await counters(cached)).misses === before.misses + 1)
      other = cached.get('/seccomp/profiles')
      outgoing.destroy()
      await until(
        'the server hears of it',
        async () => (await new Promise((r) => server.getConnections((_, n) => r(n)))) === 0,
      )
    })
    assert.equal((await other!).json.length, 1)
    assert.equal((await entries(cached)).length, 1)
    assert.equal((await counters(cached)).misses, before.misses + 1)
    await until('the log tells', () =>
      cached.logged.find((one) => one.route === '/seccomp/profiles' && one.status === 499),
    )
    assert.equal(budget.availableKib, budget.totalKib)
  } finally {
    await close(server, 0)
  }
})

// ---------------------------------------------------------------- the budget, the database, the event loop

test('GET /seccomp/profiles 503: a build without room in the read budget fails for all who wait, and the next build works', async () => {
  await storeWorkloads(guarded.sql, [
    { ...web, names: ['read'] },
    { ...web, name: 'b', names: ['read'] },
    { ...web, name: 'c', names: ['read'] },
  ])
  await storeResources(guarded.sql, [
    resource(),
    resource({ name: 'second' }),
    resource({ name: 'unseen', workload: 'unseen' }),
  ])
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib)
  const crowd = await Promise.all([1, 2, 3].map(() => guarded.get('/seccomp/profiles', { token })))
  // Three workloads, one with names, and the denials.
  for (const answer of crowd) assertShed(answer, Math.ceil(3 * 4 + 12 + DENIALS_KIB), budget.totalKib)
  release()
  assert.equal((await guarded.get('/seccomp/profiles', { token })).status, 200)
  assert.equal(budget.availableKib, budget.totalKib)
})

test('GET /seccomp/profiles 503: many or long names are charged by their length', async () => {
  const names = Array.from({ length: 1_024 }, (_, i) => `call_${i}_`.padEnd(63, 'x'))
  await storeWorkloads(guarded.sql, [{ ...web, names }])
  await storeResources(guarded.sql, [resource({ names: names.slice(1) })])
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib)
  const bytes = 1_024 * 64 - 1 + 1_023 * 64 - 1
  assertShed(
    await guarded.get('/seccomp/profiles', { token }),
    Math.ceil(4 + (3 * bytes) / 1_024 + DENIALS_KIB),
    budget.totalKib,
  )
  release()
})

test('GET /seccomp/profiles 503: a cached list is charged the cost of sending it', async () => {
  const impatient = await startApp({ BROKER_READ_ACQUIRE_WAIT_MS: '0' })
  await storeWorkloads(
    impatient.sql,
    Array.from({ length: 300 }, (_, i) => ({ ...web, name: `w-${i}`, names: ['read'] })),
  )
  const { text } = await impatient.get('/seccomp/profiles')
  const { budget } = impatient.deps
  const release = await budget.acquire(budget.totalKib)
  assertShed(await impatient.get('/seccomp/profiles'), Math.ceil(text.length / 1_024), budget.totalKib)
  release()
  const all = await budget.acquire(budget.totalKib - 1)
  assert.equal((await impatient.app.request('/seccomp/profiles', { method: 'HEAD' })).status, 200)
  all()
})

test('GET /seccomp/profiles 503: a table is locked for longer than a statement may take', async () => {
  await storeWorkloads(guarded.sql, [{ ...web, names: ['read'] }])
  for (const table of [
    'workload_syscalls',
    'syscall_contribution',
    'unattributed_syscalls',
    'seccomp_cr',
    'seccomp_node',
    'seccomp_file',
    'seccomp_denial',
  ])
    await whileRefused(guarded.sql, table, async () => {
      const crowd = await Promise.all([1, 2].map(() => guarded.get('/seccomp/profiles', { token })))
      for (const answer of crowd) assertDatabaseBusy(answer)
    })
  assert.equal((await guarded.get('/seccomp/profiles', { token })).json.length, 1)
  assert.equal(guarded.deps.budget.availableKib, guarded.deps.budget.totalKib)
})

test('GET /seccomp/profiles 200: a long list is written in slices, between which other work runs', async () => {
  const names = Array.from({ length: 200 }, (_, i) => `call_${i}`)
  await storeWorkloads(sql, [{ ...web, names }])
  await storeResources(sql, [resource({ names: names.slice(100) })])
  const [row] = await app.db.read((one) => one<EntryRow[]>`select * from seccomp_profiles('kguardian', 900)`)
  let written: Buffer | undefined
  const turns = await turnsOf(
    writtenList(Array(10_000).fill(row), new Map(), 'kguardian').then((bytes) => {
      written = bytes
    }),
  )
  const all = JSON.parse(String(written)) as { cr: { drift: { missing: string[] } } }[]
  assert.equal(all.length, 10_000)
  assert.ok(all.every(({ cr }) => cr.drift.missing.length === 100))
  assert.ok(turns > 5, `${turns} turns`)
})

test('GET /seccomp/profiles 304: a request with the current ETag gets 304 until the list changes', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'] }])
  const ask = (tag: string, method = 'GET') =>
    app.request(method, '/seccomp/profiles', { headers: { 'if-none-match': tag, 'accept-encoding': 'gzip' } })
  const first = await app.get('/seccomp/profiles')
  const tag = first.headers.get('etag')!
  for (const named of [tag, tag.slice('W/'.length), `"other", ${tag}`, ' * ']) {
    const answer = await ask(named)
    assert.deepEqual([answer.status, answer.text, answer.headers.get('etag')], [304, '', tag], named)
    assert.equal(answer.headers.get('vary'), 'accept-encoding')
    assert.equal((await ask(named, 'HEAD')).status, 304)
  }
  for (const named of ['"other"', tag.slice(0, -3), 'W/""', '']) assert.equal((await ask(named)).status, 200, named)

  await storeWorkloads(sql, [{ ...web, names: ['read', 'write'] }])
  const changed = await ask(tag)
  assert.equal(changed.status, 200)
  assert.notEqual(changed.headers.get('etag'), tag)
  assert.equal(app.deps.budget.availableKib, app.deps.budget.totalKib)
})
