/** The denials of a workload in its profile (docs/contract.md#denials). */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { startApp } from '../support/app.ts'
import {
  byBytes,
  forgetSeccomp,
  profilePath,
  type StoredDenial,
  storeDenials,
  storeWatchers,
  storeWorkloads,
  type WorkloadKey,
} from '../support/seccomp.ts'

const app = await startApp({ SECCOMP_PROFILES_CACHE_TTL_SECS: '0' })
const { sql } = app
const web: WorkloadKey = { namespace: 'shop', kind: 'Deployment', name: 'web' }
const CLEAN = { total: 0, syscalls: [], actions: [], lastSeen: null }
const EVENT = '"total":'

beforeEach(() => forgetSeccomp(sql))

/** The rollup of a workload, which must be equal in the list and in the single answer. */
async function rollup(workload = web) {
  const list = (await app.get('/seccomp/profiles')).json as (WorkloadKey & { denials: unknown })[]
  const entry = list.find(
    ({ namespace, kind, name }) =>
      [namespace, kind, name].join() === [workload.namespace, workload.kind, workload.name].join(),
  )
  const { denials } = (await app.get(profilePath(workload))).json
  assert.deepEqual(entry!.denials, denials)
  return denials
}
const denial = (fields: Partial<StoredDenial> = {}): StoredDenial => ({
  pod: 'p',
  namespace: 'shop',
  kind: 'Deployment',
  workload: 'web',
  syscall: 'bpf',
  ...fields,
})
const observe = (...keys: WorkloadKey[]) =>
  storeWorkloads(
    sql,
    (keys.length > 0 ? keys : [web]).map((key) => ({ ...key, names: ['read'] })),
  )

test('GET /seccomp/profiles 200: denials are null while no node reports them, also with a stored denial', async () => {
  await observe()
  await storeDenials(sql, [denial()])
  assert.equal(await rollup(), null)
  await storeWatchers(sql, [{ name: 'off', capturing: false }])
  assert.equal(await rollup(), null)
  await storeWatchers(sql, [{ name: 'on' }])
  assert.deepEqual(await rollup(), {
    total: 1,
    syscalls: ['bpf'],
    actions: ['SCMP_ACT_LOG'],
    lastSeen: '2026-05-01T10:00:00Z',
  })
})

test('GET /seccomp/profiles 200: a report of a node counts for three of its intervals, at least five minutes and at most thirty', async () => {
  await observe()
  for (const [interval, secondsAgo, isLive] of [
    [null, 290, true],
    [null, 310, false],
    [10, 290, true],
    [10, 310, false],
    [100, 310, false],
    [120, 350, true],
    [120, 370, false],
    [599, 1_790, true],
    [600, 1_790, true],
    [600, 1_810, false],
  ] as const) {
    await storeWatchers(sql, [{ name: 'n', interval, secondsAgo }])
    assert.deepEqual(await rollup(), isLive ? CLEAN : null, `${interval} s, ${secondsAgo} s ago`)
  }
  // One live node is enough for all workloads.
  await storeWatchers(sql, [{ name: 'other' }])
  assert.deepEqual(await rollup(), CLEAN)
})

test('GET /seccomp/profiles 200: an unattributed denial makes the denials of its namespace null, and of no other', async () => {
  const other = { ...web, namespace: 'other' }
  for (const half of [
    { kind: null, workload: null },
    { kind: null, workload: 'web' },
    { kind: 'Deployment', workload: null },
  ]) {
    await forgetSeccomp(sql)
    await observe(web, other)
    await storeWatchers(sql, [{ name: 'n' }])
    await storeDenials(sql, [denial(), denial({ namespace: 'other' }), denial({ namespace: 'other', ...half })])
    assert.equal((await rollup()).total, 1)
    assert.equal(await rollup(other), null)
  }
})

test('GET /seccomp/profiles 200: denials are null everywhere if more than 1 000 namespaces have unattributed ones', async () => {
  await observe()
  await storeWatchers(sql, [{ name: 'n' }])
  const unknown = (from: number, to: number) => sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, syscall, action, count, first_seen, last_seen)
    select 'u-' || n || '-' || i, 'p', 'ns-' || n, 'bpf', 'SCMP_ACT_LOG', 1, now() at time zone 'utc', now() at time zone 'utc'
    from generate_series(${from}::int, ${to}::int) n, generate_series(1, 3) i`
  await unknown(1, 1_000)
  assert.deepEqual(await rollup(), CLEAN)
  await unknown(1_001, 1_001)
  assert.equal(await rollup(), null)
})

test('GET /seccomp/profiles 200: all events of all pods of a workload count; names are listed once, by bytes', async () => {
  await observe()
  await storeWatchers(sql, [{ name: 'n' }])
  await storeDenials(sql, [
    denial({ syscall: 'mount', action: 'SCMP_ACT_LOG', count: 5, lastSeen: '2026-05-01T10:00:00.25' }),
    denial({ syscall: 'bpf', action: 'SCMP_ACT_ERRNO', count: 7, pod: 'q', lastSeen: '2026-05-01T09:00:00' }),
    denial({ syscall: 'bpf', action: 'SCMP_ACT_ERRNO', count: 1 }),
    denial({ syscall: '\u{ff5e}' }),
    denial({ syscall: '\u{1f600}' }),
    denial({ syscall: 'elsewhere', namespace: 'other' }),
    denial({ syscall: 'elsewhere', kind: 'Job' }),
    denial({ syscall: 'elsewhere', workload: 'other' }),
  ])
  assert.deepEqual(await rollup(), {
    total: 15,
    syscalls: ['bpf', 'mount', '\u{ff5e}', '\u{1f600}'],
    actions: ['SCMP_ACT_ERRNO', 'SCMP_ACT_LOG'],
    lastSeen: '2026-05-01T10:00:00.250Z',
  })
})

test('GET /seccomp/profiles 200: a total beyond 2^53 keeps its digits', async () => {
  await observe()
  await storeWatchers(sql, [{ name: 'n' }])
  await sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
    select 'u-' || n, 'p', 'shop', 'Deployment', 'web', 'bpf', 'SCMP_ACT_LOG', 1000000000000, timestamp '2026-05-01', timestamp '2026-05-01'
    from generate_series(1, 10000) n`
  await storeDenials(sql, [denial({ count: 1 })])
  for (const path of ['/seccomp/profiles', profilePath(web)]) {
    const { text } = await app.get(path)
    assert.equal(/^\d+/.exec(text.slice(text.indexOf(EVENT) + EVENT.length))![0], '10000000000000001', path)
  }
})

test('GET /seccomp/profiles 200: at most 50 syscalls and 16 actions, the first by bytes, and every event in the total', async () => {
  await observe()
  await storeWatchers(sql, [{ name: 'n' }])
  const all = Array.from({ length: 60 }, (_, i) => `call_${i}`)
  const actions = Array.from({ length: 20 }, (_, i) => `ACT_${i}`)
  await storeDenials(sql, [
    ...all.map((syscall) => denial({ syscall, action: 'ACT_0' })),
    ...actions.map((action) => denial({ syscall: 'call_0', action, pod: 'q' })),
  ])
  const { total, syscalls, actions: shown } = await rollup()
  assert.deepEqual([total, syscalls, shown], [80, byBytes(all).slice(0, 50), byBytes(actions).slice(0, 16)])
})

test('GET /seccomp/profiles 200: names are those of the first 800 pairs of a workload', async () => {
  await observe()
  await storeWatchers(sql, [{ name: 'n' }])
  // 20 actions each: 800 pairs are 40 syscalls.
  const pairs = Array.from({ length: 60 }, (_, i) => i).flatMap((i) =>
    Array.from({ length: 20 }, (_, k) => denial({ syscall: `call_${String(i).padStart(2, '0')}`, action: `ACT_${k}` })),
  )
  await storeDenials(sql, pairs)
  const { total, syscalls } = await rollup()
  assert.deepEqual([total, syscalls.length, syscalls.at(-1)], [1_200, 40, 'call_39'])
})

test('GET /seccomp/profiles 200: with more than 10 000 pairs names are shortened evenly, totals are not, and the broker logs it', async () => {
  const logged = () => app.logged.filter(({ msg }) => /names of seccomp denials were left out/.test(String(msg))).length
  const workloads = Array.from({ length: 300 }, (_, i) => ({ ...web, name: `w-${String(i).padStart(3, '0')}` }))
  await observe(...workloads)
  await storeWatchers(sql, [{ name: 'n' }])
  const deny = (pairs: number) => sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
    select 'u', 'p-' || w, 'shop', 'Deployment', 'w-' || lpad(w::text, 3, '0'), 'call_' || lpad(w::text, 3, '0') || '_' || lpad(n::text, 2, '0'),
           'SCMP_ACT_LOG', 1, timestamp '2026-05-01', timestamp '2026-05-01'
    from generate_series(0, 299) w, generate_series(1, ${pairs}::int) n`
  await deny(33)
  const lengths = async () => {
    const list = (await app.get('/seccomp/profiles')).json as { denials: { total: number; syscalls: string[] } }[]
    return list.map(({ denials }) => [denials.total, denials.syscalls.length])
  }
  assert.deepEqual(new Set((await lengths()).map(String)), new Set(['33,33']))
  assert.equal(logged(), 0)
  await sql`truncate seccomp_denial`
  await deny(40)
  const shown = await lengths()
  // 33 of each, and 34 of 100.
  assert.deepEqual(
    shown.map(String),
    Array.from({ length: 300 }, (_, i) => (i < 100 ? '40,34' : '40,33')),
  )
  assert.equal(logged(), 1)
  // It is not logged at each of many builds.
  await lengths()
  assert.equal(logged(), 1)
  // A single workload is not shortened.
  assert.equal((await app.get(profilePath(workloads[299]!))).json.denials.syscalls.length, 40)
})

test('GET /seccomp/profiles 200: every workload has at least one name, however many there are', async () => {
  await sql`
    insert into workload_syscalls
    select 'ns', 'Deployment', 'w-' || lpad(n::text, 5, '0'), 'read', '{}', '', 1, timestamp '2026-05-01' from generate_series(1, 10100) n`
  await sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
    select 'u-' || n, 'p-' || n, 'ns', 'Deployment', 'w-' || lpad(n::text, 5, '0'), 'bpf' || i, 'SCMP_ACT_LOG', 1, timestamp '2026-05-01', timestamp '2026-05-01'
    from generate_series(1, 10100) n, generate_series(1, 2) i`
  await storeWatchers(sql, [{ name: 'n' }])
  const list = (await app.get('/seccomp/profiles')).json as { denials: { total: number; syscalls: string[] } }[]
  assert.equal(list.length, 10_100)
  assert.ok(list.every(({ denials }) => denials.total === 2 && denials.syscalls.join() === 'bpf1'))
})
