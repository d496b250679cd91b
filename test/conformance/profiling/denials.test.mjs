// Kernel seccomp denials: what a drain stores and drops, how rows are read, attribution, the roll-up of an entry, capturing and staleness, the counter.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  calls,
  computeJob,
  denial,
  inOrder,
  metric,
  micros,
  ok,
  plainly,
  pod,
  podUid,
  postgres,
  profiling,
  refused,
  rfc,
  rfcIn,
  rfcTime,
  sameTime,
  unique,
} from '../lib/profiling.mjs'

const UNCACHED = { SECCOMP_PROFILES_CACHE_TTL_SECS: '0' }
let b
let s
let pg = null
const cleanups = []
before(async () => {
  b = await startBroker({ env: UNCACHED })
  s = profiling(b)
  ok(await s.drain('keeper', []))
})
after(async () => {
  for (const stop of cleanups.reverse()) await stop().catch(() => {})
  await b?.stop()
  await pg?.stop()
})
const another = async (env) => {
  const o = await startBroker({ env: { ...UNCACHED, ...env } })
  cleanups.push(() => o.stop())
  return { o, t: profiling(o) }
}

const ROW_KEYS = [
  'id',
  'podUid',
  'podName',
  'podNamespace',
  'workloadKind',
  'workloadName',
  'nodeName',
  'syscall',
  'syscallNr',
  'action',
  'actionRaw',
  'arch',
  'count',
  'firstSeen',
  'lastSeen',
]
const CLEAN = { total: 0, syscalls: [], actions: [], lastSeen: null }
const rows = async (params, p = s) => ok(await p.denials(params)).json
const drained = async (entries, over, p = s) => ok(await p.drain('node-a', entries, over)).json
/** A workload with one pod, and a maker of denials of that pod. */
async function victim(p = s, over = {}) {
  const w = await p.workload({ pods: [{ names: ['read'] }], ...over })
  const mine = (d = {}) => denial({ podName: w.pods[0].name, podNamespace: w.ns, ...d })
  return { ...w, pod: w.pods[0].name, mine }
}
const rollup = async (w, p = s) => (await p.profile(w)).denials

// ---- a drain

check('denials: a row has the keys of the sheet in their order', async () => {
  const v = await victim()
  const [first, last] = [rfcIn(-30), rfcIn(-5)]
  assert.deepEqual(
    await drained([
      v.mine({
        syscall: 'ptrace',
        syscallNr: 101,
        action: 'SCMP_ACT_ERRNO',
        actionRaw: 327681,
        arch: 'SCMP_ARCH_X86_64',
        count: 7,
        firstSeen: first,
        lastSeen: last,
      }),
    ]),
    { accepted: 1 },
  )
  const [row, ...more] = await rows({ namespace: v.ns })
  assert.deepEqual(more, [])
  inOrder(row, ROW_KEYS)
  const { id, firstSeen, lastSeen, ...rest } = row
  assert.ok(Number.isInteger(id))
  assert.match(firstSeen, rfcTime)
  assert.match(lastSeen, rfcTime)
  sameTime(firstSeen, first)
  sameTime(lastSeen, last)
  assert.deepEqual(rest, {
    podUid: podUid(v.pod),
    podName: v.pod,
    podNamespace: v.ns,
    workloadKind: 'Deployment',
    workloadName: 'web',
    nodeName: 'node-a',
    syscall: 'ptrace',
    syscallNr: 101,
    action: 'SCMP_ACT_ERRNO',
    actionRaw: 327681,
    arch: 'SCMP_ARCH_X86_64',
    count: 7,
  })
})

check('denials: optional fields may be absent', async () => {
  const v = await victim()
  const { firstSeen, lastSeen, ...bare } = v.mine()
  assert.ok(firstSeen && lastSeen)
  const from = Date.now()
  assert.deepEqual(await drained([bare]), { accepted: 1 })
  const [row] = await rows({ namespace: v.ns })
  assert.deepEqual([row.syscallNr, row.actionRaw, row.arch], [null, null, null])
  for (const t of [row.firstSeen, row.lastSeen])
    assert.ok(Math.abs(Number(micros(t) / 1000n) - from) < 60_000, `about now: ${t}`)
})

check('denials: an empty drain is accepted', async () => {
  assert.deepEqual(await drained([]), { accepted: 0 })
})

check('denials: counts accumulate over drains, times bracket them all', async () => {
  const v = await victim()
  const t = (secs) => rfcIn(secs)
  const [earliest, latest] = [t(-100), t(-10)]
  await drained([v.mine({ count: 2, firstSeen: t(-50), lastSeen: t(-40) })])
  await drained([v.mine({ count: 3, firstSeen: earliest, lastSeen: t(-45) })])
  await drained([v.mine({ count: 4, firstSeen: t(-30), lastSeen: latest })])
  const got = await rows({ namespace: v.ns })
  assert.equal(got.length, 1)
  assert.equal(got[0].count, 9)
  sameTime(got[0].firstSeen, earliest)
  sameTime(got[0].lastSeen, latest)
})

check('denials: entries of one drain are folded by pod, syscall and action', async () => {
  const v = await victim()
  const [first, last] = [rfcIn(-80), rfcIn(-8)]
  const accepted = await drained([
    v.mine({ count: 1, firstSeen: rfcIn(-40), lastSeen: last }),
    v.mine({ count: 5, syscallNr: 101, firstSeen: first, lastSeen: rfcIn(-20) }),
    v.mine({ count: 2, syscall: 'bpf' }),
    v.mine({ count: 3, action: 'SCMP_ACT_LOG' }),
  ])
  assert.deepEqual(accepted, { accepted: 3 })
  const got = await rows({ namespace: v.ns })
  assert.equal(got.length, 3)
  const folded = got.find((r) => r.syscall === 'ptrace' && r.action === 'SCMP_ACT_ERRNO')
  assert.equal(folded.count, 6)
  assert.equal(folded.syscallNr, 101)
  sameTime(folded.firstSeen, first)
  sameTime(folded.lastSeen, last)
})

check('denials: the optional fields and the node of a row follow the newest drain that has them', async () => {
  const v = await victim()
  await drained([v.mine({ syscallNr: 101, arch: 'SCMP_ARCH_ARM64' })])
  assert.equal((await rows({ namespace: v.ns }))[0].arch, 'SCMP_ARCH_AARCH64')
  ok(await s.drain('node-b', [v.mine({ actionRaw: 5 })]))
  const [row] = await rows({ namespace: v.ns })
  assert.deepEqual(
    [row.syscallNr, row.actionRaw, row.arch, row.nodeName, row.count],
    [101, 5, 'SCMP_ARCH_AARCH64', 'node-b', 2],
  )
})

check('denials: a time in the future becomes now, a reversed pair is put right', async () => {
  const v = await victim()
  await drained([
    v.mine({ syscall: 'bpf', firstSeen: rfcIn(-60), lastSeen: rfcIn(86_400) }),
    v.mine({ syscall: 'mount', firstSeen: rfcIn(-10), lastSeen: rfcIn(-90) }),
  ])
  const got = await rows({ namespace: v.ns })
  const by = (name) => got.find((r) => r.syscall === name)
  assert.ok(micros(by('bpf').lastSeen) <= BigInt(Date.now() + 60_000) * 1000n)
  assert.ok(micros(by('mount').firstSeen) < micros(by('mount').lastSeen))
})

for (const [what, over] of [
  ['without podUid', { podUid: undefined }],
  ['with a blank podUid', { podUid: ' ' }],
  ['with a podUid of 129', { podUid: 'u'.repeat(129) }],
  ['without podName', { podName: undefined }],
  ['with a podName of 254', { podName: 'p'.repeat(254) }],
  ['without podNamespace', { podNamespace: undefined }],
  ['with a podNamespace of 254', { podNamespace: 'n'.repeat(254) }],
  ['without syscall', { syscall: undefined }],
  ['with a blank syscall', { syscall: '' }],
  ['with a syscall of 129', { syscall: 's'.repeat(129) }],
  ['without action', { action: undefined }],
  ['with an action of 65', { action: 'A'.repeat(65) }],
  ['with an arch of 65', { arch: 'a'.repeat(65) }],
  ['without count', { count: undefined }],
  ['with a count of 0', { count: 0 }],
  ['with a negative count', { count: -3 }],
  ['with a count above 10^12', { count: 1e12 + 1 }],
]) {
  check(`denials: an entry ${what} is dropped, the rest is stored`, async () => {
    const v = await victim()
    assert.deepEqual(await drained([v.mine({ syscall: 'bpf' }), v.mine(over), v.mine({ syscall: 'mount' })]), {
      accepted: 2,
    })
    assert.deepEqual((await rows({ namespace: v.ns })).map((r) => r.syscall).sort(), ['bpf', 'mount'])
  })
}

check('denials: a drain needs a node, and a list', async () => {
  for (const node of [undefined, null, '', '  ', 7, 'n'.repeat(254)])
    refused(await s.drain(node, []), 400, String(node))
  refused(await b.post('/seccomp/denials', { node: 'node-a', capturing: true, denials: {} }), 400)
  refused(await b.post('/seccomp/denials', []), 400)
  refused(
    await b.request('POST', '/seccomp/denials', {
      raw: true,
      body: '{"node":"n',
      headers: { 'content-type': 'application/json' },
    }),
    400,
  )
})

// ---- reading rows

check('denials: no match is an empty list', async () => {
  const r = ok(await s.denials({ namespace: unique('empty') }))
  assert.deepEqual(r.json, [])
})

check('denials: filters combine, blank ones do not filter', async () => {
  const ns = unique('filters')
  const [web, api] = [await victim(s, { ns, name: 'web' }), await victim(s, { ns, kind: 'StatefulSet', name: 'api' })]
  const elsewhere = await victim(s, { name: 'web' })
  await drained([web.mine(), web.mine({ syscall: 'bpf' }), api.mine(), elsewhere.mine()])
  const count = async (params) => (await rows({ namespace: ns, ...params })).length
  assert.equal(await count({}), 3)
  assert.equal(await count({ kind: 'Deployment' }), 2)
  assert.equal(await count({ kind: 'Deployment', workload: 'api' }), 0)
  assert.equal(await count({ kind: 'StatefulSet', workload: 'api' }), 1)
  assert.equal(await count({ workload: 'web' }), 2)
  assert.equal(await count({ kind: '', workload: '' }), 3)
  assert.equal(await count({ kind: 'deployment' }), 0)
  const all = await rows({ namespace: '', workload: 'web', kind: 'Deployment', limit: 500 })
  assert.ok(all.some((r) => r.podNamespace === elsewhere.ns) && all.some((r) => r.podNamespace === ns))
})

check('denials: since keeps rows seen at or after it, and needs a zone', async () => {
  const v = await victim()
  const t = Math.floor(Date.now() / 1000) * 1000 - 60_000
  await drained([
    v.mine({ syscall: 'a1', lastSeen: rfc(t - 1000), firstSeen: rfc(t - 5000) }),
    v.mine({ syscall: 'a2', lastSeen: rfc(t), firstSeen: rfc(t) }),
    v.mine({ syscall: 'a3', lastSeen: rfc(t + 1000), firstSeen: rfc(t) }),
  ])
  const since = async (text) => (await rows({ namespace: v.ns, since: text })).map((r) => r.syscall)
  assert.deepEqual(await since(rfc(t)), ['a3', 'a2'])
  assert.deepEqual(await since(new Date(t + 7_200_000).toISOString().replace('Z', '+02:00')), ['a3', 'a2'])
  assert.deepEqual(await since(rfc(t + 1)), ['a3'])
  for (const bad of [rfc(t).replace('Z', ''), 'yesterday', '2025-13-01T00:00:00Z'])
    refused(await s.denials({ since: bad }), 400, bad)
})

check('denials: rows come newest first, the key breaks ties', async () => {
  const v = await victim()
  const t = Date.now() - 60_000
  const at = (syscall, secs) => v.mine({ syscall, firstSeen: rfc(t - 9000), lastSeen: rfc(t + secs * 1000) })
  await drained([at('b1', 3)])
  await drained([at('b2', 5)])
  await drained([at('b3', 3)])
  await drained([at('b4', 4)])
  const got = await rows({ namespace: v.ns })
  assert.deepEqual(
    got.map((r) => r.syscall),
    ['b2', 'b4', 'b3', 'b1'],
  )
  assert.ok(got[2].id > got[3].id)
  assert.deepEqual(
    (await rows({ namespace: v.ns, limit: 2 })).map((r) => r.syscall),
    ['b2', 'b4'],
  )
})

check('denials: limit is 100 by default, clamped to 1..500, and a number', async () => {
  const v = await victim()
  await drained(Array.from({ length: 510 }, (_, i) => v.mine({ syscall: `call_${i}` })))
  const count = async (limit) => (await rows({ namespace: v.ns, limit })).length
  assert.equal(await count(undefined), 100)
  assert.equal(await count(0), 1)
  assert.equal(await count(-5), 1)
  assert.equal(await count(501), 500)
  refused(await s.denials({ limit: 'many' }), 400)
})

// ---- attribution

check('denials: a bare pod is its own workload, an unknown pod is none', async () => {
  const ns = unique('owners')
  const [bare] = await s.pods(pod({ ns, kind: null }))
  await drained([
    denial({ podName: bare.pod_name, podNamespace: ns, syscall: 'bare' }),
    denial({ podName: unique('ghost'), podNamespace: ns, syscall: 'ghost' }),
  ])
  const got = await rows({ namespace: ns })
  const owner = (name) => {
    const r = got.find((x) => x.syscall === name)
    return [r.workloadKind, r.workloadName]
  }
  assert.deepEqual(owner('bare'), ['Pod', bare.pod_name])
  assert.deepEqual(owner('ghost'), [null, null])
})

check('denials: a pod of the same name in another namespace is not the pod', async () => {
  const v = await victim()
  const ns = unique('foreign')
  await drained([denial({ podName: v.pod, podNamespace: ns })])
  const [row] = await rows({ namespace: ns })
  assert.deepEqual([row.workloadKind, row.workloadName], [null, null])
})

check('denials: a later drain attributes a row whose pod is known by then', async () => {
  const [ns, name] = [unique('later'), unique('later-pod')]
  await drained([denial({ podName: name, podNamespace: ns, count: 2 })])
  await s.pods(pod({ ns, name }))
  await s.syscalls(calls(name, ['read']))
  await drained([denial({ podName: name, podNamespace: ns, count: 3 })])
  const [row] = await rows({ namespace: ns })
  assert.deepEqual([row.workloadKind, row.workloadName, row.count], ['Deployment', 'web', 5])
  assert.equal((await rollup({ ns, name: 'web' })).total, 5)
})

// ---- the roll-up

check('denials: the roll-up of a workload counts all its pods', async () => {
  const w = await s.workload({ pods: [{ names: ['read'] }, { names: ['read'] }] })
  const last = rfcIn(-3)
  const of = (i, over) => denial({ podName: w.pods[i].name, podNamespace: w.ns, ...over })
  await drained([
    of(0, { syscall: 'ptrace', action: 'SCMP_ACT_LOG', count: 5 }),
    of(0, { syscall: 'bpf', action: 'SCMP_ACT_ERRNO', count: 2 }),
    of(1, { syscall: 'ptrace', action: 'SCMP_ACT_ERRNO', count: 4, lastSeen: last }),
  ])
  const got = await rollup(w)
  inOrder(got, ['total', 'syscalls', 'actions', 'lastSeen'])
  const { lastSeen, ...rest } = got
  assert.deepEqual(rest, { total: 11, syscalls: ['bpf', 'ptrace'], actions: ['SCMP_ACT_ERRNO', 'SCMP_ACT_LOG'] })
  sameTime(lastSeen, last)
  assert.deepEqual((await s.entry(w)).denials, got, 'the list says the same')
})

check('denials: a clean workload has a total of zero while a node captures', async () => {
  assert.deepEqual(await rollup(await victim()), CLEAN)
})

check('denials: an unattributed row makes every roll-up of its namespace null, and no other', async () => {
  const ns = unique('murky')
  const [one, two] = [await victim(s, { ns, name: 'one' }), await victim(s, { ns, name: 'two' })]
  await drained([one.mine({ count: 3 })])
  assert.equal((await rollup(one)).total, 3)
  await drained([denial({ podName: unique('stranger'), podNamespace: ns })])
  assert.equal(await rollup(one), null)
  assert.equal(await rollup(two), null)
  assert.equal((await s.entry(two)).denials, null)
  assert.deepEqual(await rollup(await victim()), CLEAN)
})

check('denials: at most 50 syscalls are named, all are counted', async () => {
  const v = await victim()
  const names = Array.from({ length: 60 }, (_, i) => `call_${String(i).padStart(2, '0')}`)
  await drained(names.map((syscall) => v.mine({ syscall, count: 2 })))
  const got = await rollup(v)
  assert.equal(got.total, 120)
  assert.equal(got.syscalls.length, 50)
  assert.deepEqual(got.syscalls, [...got.syscalls].sort())
  assert.ok(got.syscalls.every((n) => names.includes(n)))
})

check('denials: the roll-up is null until a node captures', async () => {
  const { o, t } = await another({ WIRE_NAMES: 'kguardian' })
  const v = await victim(t)
  const send = (over, entries = []) => t.drain('n1', entries, over).then(ok)
  assert.equal(await rollup(v, t), null, 'nobody reported')
  await send({ capturing: false })
  assert.equal(await rollup(v, t), null, 'the probe is not attached')
  await send({ capturing: undefined })
  assert.equal(await rollup(v, t), null, 'no flag and no row')
  await send({ capturing: false }, [v.mine({ count: 0 })])
  assert.equal(await rollup(v, t), null, 'no surviving row')
  await send({ capturing: true })
  assert.deepEqual(await rollup(v, t), CLEAN)
  await send({ capturing: false })
  assert.equal(await rollup(v, t), null, 'the last report counts')
  await send({ capturing: false }, [v.mine({ count: 2 })])
  assert.equal((await rollup(v, t)).total, 2, 'real denials outrank the flag')
  await send({ capturing: false })
  assert.equal(await rollup(v, t), null, 'a stored denial is not liveness')
  ok(await t.drain('n2', []))
  assert.equal((await rollup(v, t)).total, 2, 'one live node makes all answerable')
  // With the ecosystem's names the counter has another name and one more label.
  const found = await metric(o, 'kguardian_seccomp_denials_total', {
    workload_namespace: v.ns,
    workload_kind: 'Deployment',
    workload: 'web',
    action: 'SCMP_ACT_ERRNO',
  })
  assert.equal(found?.value, 2)
  await o.stop()
})

// ---- the counter

check('denials: the counter follows the deltas per workload', async () => {
  const v = await victim()
  const read = async () =>
    await metric(b, 'svc_seccomp_denials_total', {
      workload_namespace: v.ns,
      workload_kind: 'Deployment',
      workload: 'web',
    })
  assert.equal(await read(), undefined)
  await drained([
    v.mine({ count: 2 }),
    v.mine({ syscall: 'bpf', count: 3 }),
    v.mine({ action: 'SCMP_ACT_LOG', count: 1 }),
  ])
  const { value, labels } = await read()
  assert.equal(value, 6)
  assert.deepEqual(Object.keys(labels).sort(), ['workload', 'workload_kind', 'workload_namespace'])
  await drained([v.mine({ count: 4 }), v.mine({ count: -4 })])
  assert.equal((await read()).value, 10)
})

// ---- staleness

check('denials: a node is live for five minutes, or three times its declared cadence', async (c) => {
  pg ??= await postgres()
  if (!pg) return c.skip('no PostgreSQL server programs found')
  const { o, t } = await another({ DATABASE_URL: pg.url })
  const v = await victim(t)
  const send = (intervalSeconds) => t.drain('n1', [], { intervalSeconds }).then(ok)
  for (const [interval, window] of [
    [undefined, 300],
    [0, 300],
    [10, 300],
    [200, 600],
  ]) {
    await send(interval)
    await pg.age(window - 25)
    assert.deepEqual(await rollup(v, t), CLEAN, `cadence ${interval}: live ${window - 25} s later`)
    await pg.age(26)
    assert.equal(await rollup(v, t), null, `cadence ${interval}: stale after ${window} s`)
  }
  await o.stop()
})

// ---- the hourly pass and retention

check('denials: the hourly pass attributes rows whose pod is known by then', async (c) => {
  const { o, t } = await another({ JOBS: 'external' })
  const v = await victim(t)
  const ghost = unique('ghost')
  ok(await t.drain('n1', [v.mine({ count: 2 }), denial({ podName: ghost, podNamespace: v.ns, count: 3 })]))
  assert.equal(await rollup(v, t), null)
  await t.pods(pod({ ns: v.ns, workload: v.name, name: ghost }))
  const done = await computeJob(o, 'seccomp-denial-retention')
  if (!done) return c.skip('no dist/jobs/run.js beside BROKER_CMD')
  assert.equal(done.code, 0, done.log)
  for (const r of await rows({ namespace: v.ns }, t))
    assert.deepEqual([r.workloadKind, r.workloadName], ['Deployment', 'web'], r.podName)
  assert.equal((await rollup(v, t)).total, 5)
  await o.stop()
})

check('denials: retention deletes rows that were not seen for so many days, 0 keeps all', async (c) => {
  // Reads go by the days, too: here only the job deletes.
  const { o, t } = await another({ JOBS: 'external', SECCOMP_DENIALS_RETENTION_DAYS: '0' })
  const v = await victim(t)
  const day = 86_400
  ok(
    await t.drain(
      'n1',
      [1, 3, 29, 31].map((days) =>
        v.mine({ syscall: `seen_${days}`, count: days, firstSeen: rfcIn(-90 * day), lastSeen: rfcIn(-days * day) }),
      ),
    ),
  )
  /** One pass; returns the syscalls that are left, newest first. */
  const pass = async (days, args) => {
    const done = await computeJob(o, 'seccomp-denial-retention', {
      env: days === undefined ? {} : { SECCOMP_DENIALS_RETENTION_DAYS: days },
      args,
    })
    if (!done) return null
    assert.equal(done.code, 0, done.log)
    return (await rows({ namespace: v.ns }, t)).map((r) => r.syscall)
  }
  const all = await pass('0')
  if (!all) return c.skip('no dist/jobs/run.js beside BROKER_CMD')
  assert.deepEqual(all, ['seen_1', 'seen_3', 'seen_29', 'seen_31'])
  assert.deepEqual(await pass('2', ['--dry-run']), all, 'a dry run only counts')
  assert.deepEqual(await pass(undefined), ['seen_1', 'seen_3', 'seen_29'], '30 days by default')
  assert.deepEqual(await pass('2'), ['seen_1'])
  assert.equal((await rollup(v, t)).total, 1, 'the roll-up is over the retention window')
  await o.stop()
})

check('denials: the routes answer plain text when they refuse', async () => {
  plainly(await s.denials({ since: 'soon' }), 400)
})
