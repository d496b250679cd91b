// Compute: samples and heartbeats, latest gauges, nodes, minute history, contention pairs, the read budget, folding and pruning.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  computeBlame,
  computeJob,
  computeKeys,
  computeMinute,
  computeMinutes,
  computeRunq,
  computeSample,
  computeTick,
  inOrder,
  micros,
  near,
  ok,
  plainly,
  pod,
  podUid,
  postgres,
  profiling,
  refused,
  rfcTime,
  rfcWhole,
  rfcWholeTime,
  sameKeys,
  unique,
} from '../lib/profiling.mjs'
import { rawPost } from '../lib/supply-chain.mjs'

// Jobs run when a case runs them.
const OWN_JOBS = { JOBS: 'external' }
let b
let s
let pg = null
const cleanups = []
before(async () => {
  b = await startBroker({ env: OWN_JOBS })
  s = profiling(b)
})
after(async () => {
  for (const stop of cleanups.reverse()) await stop().catch(() => {})
  await b?.stop()
  await pg?.stop()
})
const another = async (env) => {
  const o = await startBroker({ env: { ...OWN_JOBS, ...env } })
  cleanups.push(() => o.stop())
  return { o, t: profiling(o) }
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const now = () => Math.floor(Date.now() / SECOND) * SECOND
const sample = async (containers, over, p = s) => ok(await p.samples(computeTick(containers, over))).json
const minutes = async (containers, over, p = s) => ok(await p.history(computeMinutes(containers, over))).json
const latest = async (namespace, p = s) => ok(await p.compute('latest', { namespace })).json
const only = async (namespace, p = s) => {
  const { containers } = await latest(namespace, p)
  assert.equal(containers.length, 1)
  return containers[0]
}
const history = async (c, params, p = s) => ok(await p.compute(`history/${c.pod_uid}`, params)).json.rows
const pairs = async (params, p = s) => ok(await p.compute('contention', params)).json.pairs
const nodes = async (p = s) => ok(await p.compute('nodes')).json.nodes
const nodeStatus = async (node, p = b) => ok(await p.get('/node/status')).json.nodes.find((n) => n.node === node)
const millis = (time) => Number(micros(time) / 1000n)
const recent = (time, what, form = rfcWholeTime) => {
  assert.match(time, form, what)
  assert.ok(Math.abs(millis(time) - Date.now()) < MINUTE, `${what} is about now: ${time}`)
}
const beaten = (row) => recent(row.lastHeartbeatAt, 'lastHeartbeatAt', rfcTime)
const without = (o, ...keys) => {
  const out = structuredClone(o)
  for (const k of keys) delete out[k]
  return out
}

// ---- samples and GET /compute/latest

check('compute: a sample is a row of latest, its keys in the order of the sheet', async () => {
  const ns = unique('row')
  const at = now()
  const blame = [
    computeBlame(9_000_000),
    computeBlame(4_000_000, { kind: 'kernel', ref: 'kernel', container_uid: null }),
  ]
  const c = computeSample({
    ns,
    pod: 'web-0',
    container: 'app',
    runq: computeRunq({ overflow: 2 }),
    blame,
    of_no_interest: 1,
  })
  assert.deepEqual(await sample([c], { at, node: 'node-row', of_no_interest: {} }), { accepted: 1 })
  const got = await latest(ns)
  assert.deepEqual(Object.keys(got).sort(), ['containers', 'nodes'])
  const [row, ...more] = got.containers
  assert.deepEqual(more, [])
  inOrder(row, computeKeys.latest)
  recent(row.updated_at, 'updated_at')
  assert.deepEqual(without(row, 'updated_at'), {
    container_uid: c.container_uid,
    pod_uid: c.pod_uid,
    namespace: ns,
    pod_name: 'web-0',
    container: 'app',
    node: 'node-row',
    cgroup_id: c.cgroup_id,
    ts: rfcWhole(at),
    interval_ms: 5000,
    cpu_usage_millis: 100,
    cpu_quota_usec: 200_000,
    cpu_period_usec: 100_000,
    cpu_request_millis: 250,
    cpu_limit_millis: 2000,
    cpu_nr_periods: 50,
    cpu_nr_throttled: 5,
    cpu_throttled_usec: 40_000,
    cpu_psi_some10: 12.5,
    cpu_psi_full10: 2.25,
    mem_current: 300_000_000,
    mem_working_set: 200_000_000,
    mem_limit: 536_870_912,
    mem_request: 268_435_456,
    mem_psi_some10: 1.5,
    mem_psi_full10: 0.5,
    mem_events_high: 3,
    mem_events_max: 2,
    mem_oom_kill: 1,
    mem_refault: 70,
    mem_pgmajfault: 9,
    runq_count: 60,
    runq_p50_us: 200,
    runq_p95_us: 900,
    runq_p99_us: 1500,
    runq_max_us: 4000,
    runq_overflow: 2,
    blame,
    blame_omitted: 0,
    blame_omitted_wait_ns: 0,
  })
})

check(
  'compute: without a probe the run-queue values are null, without a quota, request or limit so are those',
  async () => {
    const ns = unique('bare')
    const c = computeSample({
      ns,
      cpu: { quota_usec: null, request_millis: null, limit_millis: null, period_usec: undefined },
      memory: { limit: null, request: null },
    })
    await sample([c])
    const row = await only(ns)
    for (const k of ['runq_count', 'runq_p50_us', 'runq_p95_us', 'runq_p99_us', 'runq_max_us', 'runq_overflow'])
      assert.equal(row[k], null, k)
    for (const k of ['cpu_quota_usec', 'cpu_request_millis', 'cpu_limit_millis', 'mem_limit', 'mem_request'])
      assert.equal(row[k], null, k)
    assert.equal(row.cpu_period_usec, 100_000, 'the default period')
    assert.deepEqual([row.blame, row.blame_omitted, row.blame_omitted_wait_ns], [[], 0, 0])
  },
)

check('compute: the usage is the delta over the interval that it covers', async () => {
  for (const [usage_usec, interval_ms, expected] of [
    [5_000_000, 5000, 1000],
    [0, 5000, 0],
    [3_000_000, 2000, 1500],
    [60_000, 60_000, 1],
  ]) {
    const ns = unique('usage')
    await sample([computeSample({ ns, cpu: { usage_usec } })], { interval_ms })
    const row = await only(ns)
    assert.deepEqual([row.cpu_usage_millis, row.interval_ms], [expected, interval_ms])
  }
})

check('compute: a time with another offset is answered in UTC', async () => {
  const ns = unique('zone')
  const at = now()
  await sample([computeSample({ ns })], { ts: rfcWhole(at + 2 * HOUR).replace('Z', '+02:00') })
  assert.equal((await only(ns)).ts, rfcWhole(at))
})

check('compute: the next sample replaces the row, a container that it does not name stays', async () => {
  const ns = unique('next')
  const at = now() - 10 * SECOND
  const [one, two] = [computeSample({ ns, pod: 'one', blame: [computeBlame(10)] }), computeSample({ ns, pod: 'two' })]
  await sample([one, two], { at })
  assert.deepEqual(
    await sample([{ ...one, blame: [], memory: { ...one.memory, current: 1, limit: null } }], { at: at + 5 * SECOND }),
    {
      accepted: 1,
    },
  )
  const { containers } = await latest(ns)
  assert.deepEqual(
    containers.map((r) => [r.pod_name, r.ts, r.mem_current, r.mem_limit, r.blame]),
    [
      ['one', rfcWhole(at + 5 * SECOND), 1, null, []],
      ['two', rfcWhole(at), 300_000_000, 536_870_912, []],
    ],
  )
})

check('compute: of a container that is twice in a batch the last entry counts', async () => {
  const ns = unique('twice')
  const c = computeSample({ ns })
  const as = (current) => ({ ...c, memory: { ...c.memory, current } })
  assert.deepEqual(await sample([as(1), computeSample({ ns: unique('other') }), as(2), as(3)]), { accepted: 2 })
  assert.equal((await only(ns)).mem_current, 3)
})

check('compute: latest needs a namespace', async () => {
  for (const q of ['', '?namespace=', '?namespace=%20%20', '?node=node-a'])
    plainly(await b.get(`/compute/latest${q}`), 400, q)
})

check('compute: latest of a namespace without samples is empty', async () => {
  assert.deepEqual(await latest(unique('nobody')), { containers: [], nodes: [] })
})

check('compute: latest is ordered by pod and container and brings the nodes that host them', async () => {
  const ns = unique('order')
  const on = (n) => `${ns}-node-${n}`
  await sample([computeSample({ ns, pod: 'b', container: 'z' }), computeSample({ ns, pod: 'a', container: 'side' })], {
    node: on(2),
  })
  await sample([computeSample({ ns, pod: 'b', container: 'app' }), computeSample({ ns, pod: 'a', container: 'app' })], {
    node: on(1),
  })
  await sample([computeSample({ ns: `${ns}-other` })], { node: on(3) })
  const got = await latest(ns)
  assert.deepEqual(
    got.containers.map((r) => [r.pod_name, r.container, r.node]),
    [
      ['a', 'app', on(1)],
      ['a', 'side', on(2)],
      ['b', 'app', on(1)],
      ['b', 'z', on(2)],
    ],
  )
  assert.deepEqual(
    got.nodes.map((n) => n.node),
    [on(1), on(2)],
  )
  for (const n of got.nodes) sameKeys(n, computeKeys.node, 'node')
  assert.deepEqual(
    got.nodes,
    (await nodes()).filter((n) => [on(1), on(2)].includes(n.node)),
    'the same rows as GET /compute/nodes',
  )
})

check('compute: the five heaviest culprits are kept, heaviest first, the others counted', async () => {
  const ns = unique('blame')
  const waits = [30, 10, 70, 20, 60, 40, 50].map((n) => n * 1000)
  const blame = waits.map((w) =>
    computeBlame(w, { kind: 'system', ref: `system.slice/u${w}.service`, container_uid: null }),
  )
  await sample([computeSample({ ns, blame })])
  const row = await only(ns)
  assert.deepEqual(
    row.blame,
    [70_000, 60_000, 50_000, 40_000, 30_000].map((w) => blame[waits.indexOf(w)]),
  )
  assert.deepEqual([row.blame_omitted, row.blame_omitted_wait_ns], [2, 30_000])
})

check('compute: culprits that do not fit into a kibibyte are counted too', async () => {
  const ns = unique('wide')
  const blame = [4000, 3000, 2000].map((w) =>
    computeBlame(w, { ref: `other/${'p'.repeat(280)}/${w}`, container_uid: null }),
  )
  await sample([computeSample({ ns, blame })])
  const row = await only(ns)
  assert.deepEqual(row.blame, blame.slice(0, 2))
  assert.deepEqual([row.blame_omitted, row.blame_omitted_wait_ns], [1, 2000])
})

// ---- heartbeats and nodes

check('compute: a batch without containers is a heartbeat, and a row of GET /compute/nodes', async () => {
  const node = unique('beat')
  const at = now()
  const bpf_occupancy = {
    runq_enqueued: 101,
    runq_hist: 102,
    pair: 103,
    hist_update_failures: 4,
    pair_update_failures: 5,
  }
  assert.deepEqual(await sample([], { node, at, bpf_occupancy }), { accepted: 0 })
  const [row, ...more] = (await nodes()).filter((n) => n.node === node)
  assert.deepEqual(more, [])
  sameKeys(row, computeKeys.node)
  recent(row.updated_at, 'updated_at')
  assert.deepEqual(without(row, 'updated_at'), {
    node,
    ts: rfcWhole(at),
    interval_ms: 5000,
    ctxt_per_sec: 1200.5,
    compute_enabled: true,
    compute_supported: true,
    contention_loaded: true,
    cpu_some10: 10.5,
    cpu_full10: 1.25,
    mem_some10: 2.5,
    mem_full10: 0.75,
    cpu_cores: 8,
    memory_bytes: 34_359_738_368,
    bpf_runq_enqueued: 101,
    bpf_runq_hist: 102,
    bpf_pair: 103,
    unknown_blame_share: 0.25,
    bpf_hist_update_failures: 4,
    bpf_pair_update_failures: 5,
  })
})

check('compute: the flags have defaults, the failure counters are null when not sent', async () => {
  const node = unique('plain')
  await sample([], { node, compute_enabled: undefined, compute_supported: undefined, contention_loaded: undefined })
  const row = (await nodes()).find((n) => n.node === node)
  assert.deepEqual([row.compute_enabled, row.compute_supported, row.contention_loaded], [true, true, false])
  assert.deepEqual([row.bpf_hist_update_failures, row.bpf_pair_update_failures], [null, null])
})

check('compute: GET /compute/nodes has the latest sample of every node, by name', async () => {
  const group = unique('fleet')
  const names = ['c', 'a', 'd', 'b'].map((n) => `${group}-${n}`)
  for (const node of names) await sample([], { node, ctxt_per_sec: 1 })
  await sample([computeSample({ ns: group })], { node: names[2], ctxt_per_sec: 2, interval_ms: 10_000 })
  const all = await nodes()
  assert.deepEqual(
    all.map((n) => n.node),
    all.map((n) => n.node).sort(),
  )
  const mine = all.filter((n) => n.node.startsWith(`${group}-`))
  assert.deepEqual(
    mine.map((n) => [n.node.slice(-1), n.ctxt_per_sec, n.interval_ms]),
    [
      ['a', 1, 5000],
      ['b', 1, 5000],
      ['c', 1, 5000],
      ['d', 2, 10_000],
    ],
  )
})

check('compute: a node that only beats is known to GET /node/status, and stale', async () => {
  const node = unique('silent')
  await sample([], { node, compute_enabled: false, interval_ms: 300_000, contention_loaded: false })
  const row = await nodeStatus(node)
  beaten(row)
  assert.deepEqual(without(row, 'lastHeartbeatAt'), { node, lastPodPostAt: null, alivePods: 0, stale: true })
  const gauge = (await nodes()).find((n) => n.node === node)
  assert.deepEqual([gauge.compute_enabled, gauge.interval_ms], [false, 300_000])
  assert.ok(
    Math.abs(millis(gauge.updated_at) - millis(row.lastHeartbeatAt)) <= SECOND,
    'the heartbeat is the update of the node row',
  )
})

check('compute: a heartbeat joins the pods of its node, moves with every batch and cures no staleness', async () => {
  const node = unique('busy')
  const at = Date.now() - 2 * HOUR
  ok(
    await b.post(
      '/pod/spec',
      pod({ ns: 'shop', node_name: node, time_stamp: new Date(at).toISOString().slice(0, -1) }),
    ),
  )
  assert.equal((await nodeStatus(node)).lastHeartbeatAt, null)
  await sample([computeSample({ ns: unique('beats') })], { node })
  const first = await nodeStatus(node)
  beaten(first)
  assert.deepEqual([first.alivePods, first.stale, millis(first.lastPodPostAt)], [1, true, at])
  await sleep(2100)
  await sample([], { node })
  assert.ok(micros((await nodeStatus(node)).lastHeartbeatAt) > micros(first.lastHeartbeatAt), 'the next batch moves it')
})

check('compute: a history post is no heartbeat', async () => {
  const node = unique('recorder')
  assert.deepEqual(
    await minutes([computeMinute({ ns: unique('recorded') })], { node, ctxt_per_sec: 5, compute_enabled: true }),
    {
      accepted: 1,
    },
  )
  assert.equal(
    (await nodes()).find((n) => n.node === node),
    undefined,
  )
  assert.equal(await nodeStatus(node), undefined)
})

// ---- what is refused and what is skipped

const BROKEN_ENVELOPES = [
  ['no node', { node: undefined }],
  ['a null node', { node: null }],
  ['a blank node', { node: '  ' }],
  ['a number as node', { node: 7 }],
  ['a node of 254', { node: 'n'.repeat(254) }],
  ['no time', { ts: undefined }],
  ['a time without zone', { ts: '2026-01-01T00:00:00' }],
  ['a word as time', { ts: 'now' }],
  ['a number as time', { ts: 1_700_000_000 }],
  ['a thirteenth month', { ts: '2026-13-01T00:00:00Z' }],
  ['an object as containers', { containers: {} }],
]
for (const [what, over] of [
  ...BROKEN_ENVELOPES,
  ['no interval', { interval_ms: undefined }],
  ['an interval of 0', { interval_ms: 0 }],
  ['a negative interval', { interval_ms: -5000 }],
  ['a text as interval', { interval_ms: '5000' }],
]) {
  check(`compute: samples with ${what} are refused`, async () => {
    const ns = unique('broken')
    plainly(await s.samples(computeTick([computeSample({ ns })], over)), 400)
    assert.deepEqual((await latest(ns)).containers, [])
  })
}
for (const [what, over] of [
  ...BROKEN_ENVELOPES,
  ['a resolution of 0', { resolution_secs: 0 }],
  ['a negative resolution', { resolution_secs: -60 }],
]) {
  check(`compute: history with ${what} is refused`, async () => {
    const c = computeMinute({ ns: unique('broken') })
    plainly(await s.history(computeMinutes([c], over)), 400)
    assert.deepEqual(await history(c), [])
  })
}

check('compute: a body that is no JSON object is refused', async () => {
  for (const path of ['/pod/compute/batch', '/pod/compute/history/batch']) {
    for (const body of ['[]', '7', 'null', '"x"', '{"node":"n', '']) {
      refused(
        await b.request('POST', path, { raw: true, body, headers: { 'content-type': 'application/json' } }),
        400,
        `${path} ${body}`,
      )
    }
  }
})

const BAD_ROWS = [
  ['null', () => null],
  ['a number', () => 7],
  ['a text', () => 'row'],
  ['a list', () => []],
  ['an empty object', () => ({})],
  ...['container_uid', 'pod_uid', 'pod_name', 'namespace', 'container', 'cpu', 'memory'].flatMap((k) => [
    [`one without ${k}`, (c) => without(c, k)],
    [`one with a null ${k}`, (c) => ({ ...c, [k]: null })],
    [`one with a number as ${k}`, (c) => ({ ...c, [k]: 5 })],
  ]),
  ['one with an empty container_uid', (c) => ({ ...c, container_uid: '' })],
  ['one with a blank container_uid', (c) => ({ ...c, container_uid: '  ' })],
  ['one with a container_uid of 513', (c) => ({ ...c, container_uid: 'u'.repeat(513) })],
]
check('compute: a bad container of a batch is skipped, the others are kept', async () => {
  for (const [what, broken] of BAD_ROWS) {
    const ns = unique('skip')
    const answer = await sample([
      computeSample({ ns, pod: 'first' }),
      broken(computeSample({ ns, pod: 'bad' })),
      computeSample({ ns, pod: 'last' }),
    ])
    assert.equal(answer.accepted, 2, what)
    assert.deepEqual(
      (await latest(ns)).containers.map((r) => r.pod_name),
      ['first', 'last'],
      what,
    )
  }
})

check('compute: a bad container of a history post is skipped, the others are kept', async () => {
  for (const [what, broken] of BAD_ROWS) {
    const ns = unique('skip')
    const [first, bad, last] = ['first', 'bad', 'last'].map((name) => computeMinute({ ns, pod: name }))
    assert.equal((await minutes([first, broken(bad), last])).accepted, 2, what)
    assert.deepEqual(
      (await Promise.all([first, bad, last].map((c) => history(c)))).map((rows) => rows.length),
      [1, 0, 1],
      what,
    )
  }
})

check('compute: bodies may have 16 MiB', async () => {
  const filled = (body, mib) => ({ ...body, filler: Array(mib).fill('x'.repeat(1 << 20)) })
  for (const [path, make] of [
    ['/pod/compute/batch', () => computeTick([computeSample({ ns: unique('large') })])],
    ['/pod/compute/history/batch', () => computeMinutes([computeMinute({ ns: unique('large') })])],
  ]) {
    assert.deepEqual(ok(await b.post(path, filled(make(), 15))).json, { accepted: 1 })
    const over = JSON.stringify(filled(make(), 16))
    refused(
      await rawPost(b, path, { token: '', headers: { 'content-length': String(over.length) }, pieces: [over] }),
      413,
    )
  }
})

check('compute: a batch of 250 containers with 20 culprits each is taken whole', async () => {
  const ns = unique('full')
  const containers = Array.from({ length: 250 }, (_, i) =>
    computeSample({
      ns,
      pod: `p${String(i).padStart(3, '0')}`,
      blame: Array.from({ length: 20 }, (__, k) => computeBlame(1000 + k)),
    }),
  )
  assert.deepEqual(await sample(containers), { accepted: 250 })
  const rows = (await latest(ns)).containers
  assert.equal(rows.length, 250)
  for (const r of rows) assert.equal(r.blame.length + r.blame_omitted, 20)
})

// ---- history

const HISTORY_ROW = {
  resolution_secs: 60,
  cpu_usage_millis_avg: 120.5,
  cpu_usage_millis_max: 250.25,
  cpu_usage_millis_last: 90.75,
  cpu_quota_usec: 200_000,
  cpu_period_usec: 100_000,
  cpu_request_millis: 250,
  cpu_limit_millis: 2000,
  cpu_nr_periods: 600,
  cpu_nr_throttled: 30,
  cpu_throttled_usec: 90_000,
  cpu_psi_some10_avg: 4.5,
  cpu_psi_some10_max: 12.25,
  cpu_psi_full10_avg: 0.5,
  cpu_psi_full10_max: 1.75,
  mem_current_avg: 300_000_000,
  mem_current_max: 310_000_000,
  mem_current_last: 305_000_000,
  mem_working_set_avg: 200_000_000,
  mem_working_set_max: 210_000_000,
  mem_working_set_last: 205_000_000,
  mem_limit: 536_870_912,
  mem_request: 268_435_456,
  mem_psi_some10_avg: 1.5,
  mem_psi_some10_max: 3.25,
  mem_psi_full10_avg: 0.25,
  mem_psi_full10_max: 0.75,
  mem_events_high: 3,
  mem_events_max: 2,
  mem_oom_kill: 1,
  mem_refault: 70,
  mem_pgmajfault: 9,
}
const NO_RUNQ = {
  runq_count: null,
  runq_p50_us: null,
  runq_p95_us: null,
  runq_p99_us: null,
  runq_max_us: null,
  runq_overflow: null,
  runq_hist: null,
}
const identity = (c, node) => ({
  container_uid: c.container_uid,
  pod_uid: c.pod_uid,
  namespace: c.namespace,
  pod_name: c.pod_name,
  container: c.container,
  node,
})

check('compute: a minute is a row of the history of its pod', async () => {
  const at = now() - 5 * SECOND
  const node = unique('node')
  const [c, bare] = [
    computeMinute({ ns: unique('hist'), runq: computeRunq({ overflow: 4 }) }),
    computeMinute({ ns: unique('hist') }),
  ]
  assert.deepEqual(await minutes([c, bare], { at, node }), { accepted: 2 })
  const [row, ...more] = await history(c)
  assert.deepEqual(more, [])
  sameKeys(row, computeKeys.history)
  assert.ok(Number.isInteger(row.id))
  assert.deepEqual(without(row, 'id'), {
    ...identity(c, node),
    ts: rfcWhole(at),
    ...HISTORY_ROW,
    runq_count: 60,
    runq_p50_us: 200,
    runq_p95_us: 900,
    runq_p99_us: 1500,
    runq_max_us: 4000,
    runq_overflow: 4,
    runq_hist: c.runq.hist,
  })
  assert.deepEqual(
    (await history(bare)).map((r) => without(r, 'id')),
    [{ ...identity(bare, node), ts: rfcWhole(at), ...HISTORY_ROW, ...NO_RUNQ }],
  )
})

check('compute: byte gauges of the history are rounded to integers, an empty histogram is null', async () => {
  const c = computeMinute({
    ns: unique('round'),
    memory: { current: { avg: 1000.6, max: 2000.4, last: 1500.7 }, working_set: { avg: 10.4, max: 20.6, last: 15.2 } },
    runq: computeRunq({ hist: [] }),
  })
  await minutes([c])
  const [row] = await history(c)
  assert.deepEqual([row.mem_current_avg, row.mem_current_max, row.mem_current_last], [1001, 2000, 1501])
  assert.deepEqual([row.mem_working_set_avg, row.mem_working_set_max, row.mem_working_set_last], [10, 21, 15])
  assert.deepEqual([row.runq_hist, row.runq_count], [null, 60])
})

check('compute: the history of a pod is oldest first, all its containers and nobody else', async () => {
  const ns = unique('pods')
  const t = now()
  const [app, side, foreign] = [
    computeMinute({ ns, pod: 'p', container: 'app' }),
    computeMinute({ ns, pod: 'p', container: 'side' }),
    computeMinute({ ns, pod: 'q' }),
  ]
  for (const ago of [2, 4, 1, 3]) await minutes(ago === 3 ? [app] : [app, side, foreign], { at: t - ago * MINUTE })
  const rows = await history(app)
  assert.deepEqual(
    rows.map((r) => r.ts),
    [4, 4, 3, 2, 2, 1, 1].map((ago) => rfcWhole(t - ago * MINUTE)),
  )
  for (const ago of [4, 2, 1]) {
    const same = rows.filter((r) => r.ts === rfcWhole(t - ago * MINUTE))
    assert.deepEqual(same.map((r) => r.container).sort(), ['app', 'side'])
    assert.ok(same[0].id < same[1].id, 'the key breaks ties')
  }
  assert.deepEqual(ok(await b.get(`/compute/history/${podUid(unique('nobody'))}`)).json, { rows: [] })
})

check('compute: minutes of the history is 60 by default and clamped to 1..10080', async () => {
  const t = now()
  const c = computeMinute({ ns: unique('window') })
  const ages = [30 * SECOND, 2 * MINUTE, 58 * MINUTE, 62 * MINUTE, 10_070 * MINUTE, 10_090 * MINUTE]
  for (const age of ages) await minutes([c], { at: t - age })
  const seen = async (value) =>
    (await history(c, { minutes: value })).map((r) => ages.findIndex((age) => rfcWhole(t - age) === r.ts))
  for (const [value, expected] of [
    [undefined, [2, 1, 0]],
    [60, [2, 1, 0]],
    [70, [3, 2, 1, 0]],
    [1, [0]],
    [0, [0]],
    [-5, [0]],
    [10_080, [4, 3, 2, 1, 0]],
    [20_000, [4, 3, 2, 1, 0]],
  ]) {
    assert.deepEqual(await seen(value), expected, `minutes=${value}`)
  }
  refused(await b.get(`/compute/history/${c.pod_uid}?minutes=many`), 400)
})

check('compute: the resolution is a minute unless the post says otherwise', async () => {
  const t = now()
  const c = computeMinute({ ns: unique('resolution') })
  await minutes([c], { at: t - 5 * MINUTE, resolution_secs: undefined, interval_ms: undefined })
  await minutes([c], { at: t - 2 * MINUTE, resolution_secs: 30 })
  assert.deepEqual(
    (await history(c)).map((r) => r.resolution_secs),
    [60, 30],
  )
})

check('compute: a history post that is sent again changes nothing', async () => {
  const ns = unique('again')
  const at = now() - MINUTE
  const node = unique('node')
  const body = computeMinutes(
    [
      computeMinute({ ns, pod: 'one', blame: [computeBlame(500)] }),
      computeMinute({ ns, pod: 'two', blame: [computeBlame(700)] }),
    ],
    { at, node },
  )
  const read = async () => [...(await Promise.all(body.containers.map((c) => history(c)))), await pairs({ node })]
  assert.deepEqual(ok(await s.history(body)).json, { accepted: 2 })
  const first = await read()
  assert.deepEqual(
    first.map((rows) => rows.length),
    [1, 1, 2],
  )
  for (let i = 0; i < 3; i += 1) ok(await s.history(body))
  assert.deepEqual(await read(), first)
})

// ---- contention

check('compute: the culprits of a minute are pairs', async () => {
  const ns = unique('victims')
  const at = now() - 30 * SECOND
  const node = unique('node')
  const culprits = [
    computeBlame(9_000_000_000, { count: 12 }),
    computeBlame(500, { kind: 'system', ref: 'system.slice/kubelet.service', container_uid: null }),
  ]
  const c = computeMinute({ ns, blame: culprits })
  await minutes([c], { at, node })
  const expected = culprits.map((e) => ({
    ts: rfcWhole(at),
    node,
    victim_container_uid: c.container_uid,
    victim_pod_uid: c.pod_uid,
    victim_namespace: ns,
    culprit_cgroup_id: e.cgroup_id,
    culprit_kind: e.kind,
    culprit_ref: e.ref,
    culprit_container_uid: e.container_uid,
    count: e.count,
    wait_ns: e.wait_ns,
  }))
  for (const params of [{ namespace: ns }, { node }]) {
    const got = await pairs(params)
    for (const p of got) {
      sameKeys(p, computeKeys.pair)
      assert.ok(Number.isInteger(p.id))
    }
    assert.deepEqual(
      got.map((p) => without(p, 'id')),
      expected,
    )
  }
})

check('compute: contention needs a namespace or a node', async () => {
  plainly(await b.get('/compute/contention'), 400)
  plainly(await b.get('/compute/contention?minutes=5'), 400)
  refused(await b.get('/compute/contention?namespace=shop&minutes=few'), 400)
  assert.deepEqual(ok(await s.compute('contention', { namespace: unique('nobody') })).json, { pairs: [] })
})

check('compute: culprits without a kind or without a wait are no pairs', async () => {
  const ns = unique('weightless')
  await minutes([computeMinute({ ns, blame: [computeBlame(0), computeBlame(5, { kind: '' }), computeBlame(7)] })])
  assert.deepEqual(
    (await pairs({ namespace: ns })).map((p) => p.wait_ns),
    [7],
  )
})

check('compute: pairs are one per minute, not sums', async () => {
  const ns = unique('steps')
  const t = now() - 10 * SECOND
  const culprit = computeBlame(0)
  const c = computeMinute({ ns })
  for (const [ago, wait_ns] of [
    [2, 30],
    [1, 50],
    [0, 40],
  ])
    await minutes([{ ...c, blame: [{ ...culprit, wait_ns }] }], { at: t - ago * MINUTE })
  assert.deepEqual(
    (await pairs({ namespace: ns })).map((p) => [p.wait_ns, p.ts]),
    [
      [50, rfcWhole(t - MINUTE)],
      [40, rfcWhole(t)],
      [30, rfcWhole(t - 2 * MINUTE)],
    ],
  )
})

check('compute: contention looks back 5 minutes, an hour at most without a node, a week with one', async () => {
  const ns = unique('lookback')
  const node = unique('node')
  const t = now()
  const c = computeMinute({ ns })
  for (const [wait_ns, ago] of [
    [1, 4],
    [2, 6],
    [3, 50],
    [4, 70],
    [5, 10_070],
    [6, 10_090],
  ])
    await minutes([{ ...c, blame: [computeBlame(wait_ns)] }], { at: t - ago * MINUTE, node })
  const waits = async (params) => (await pairs(params)).map((p) => p.wait_ns)
  for (const [params, expected] of [
    [{ namespace: ns }, [1]],
    [{ node }, [1]],
    [{ namespace: ns, minutes: 55 }, [3, 2, 1]],
    [{ node, minutes: 55 }, [3, 2, 1]],
    [{ namespace: ns, minutes: 80 }, [3, 2, 1]],
    [{ namespace: ns, minutes: 10_080 }, [3, 2, 1]],
    [{ node, minutes: 80 }, [4, 3, 2, 1]],
    [{ node, minutes: 10_080 }, [5, 4, 3, 2, 1]],
    [{ node, minutes: 20_000 }, [5, 4, 3, 2, 1]],
  ])
    assert.deepEqual(await waits(params), expected, JSON.stringify(params))
})

check('compute: pairs come by victim, heaviest first, at most 50 of each', async () => {
  const ns = unique('crowd')
  const t = now() - 10 * SECOND
  const [many, few] = [computeMinute({ ns, pod: 'many' }), computeMinute({ ns, pod: 'few' })]
  for (let m = 0; m < 6; m += 1) {
    const blame = Array.from({ length: 10 }, (_, i) => computeBlame(1000 + i * 6 + m))
    await minutes(
      [
        { ...many, blame },
        { ...few, blame: [computeBlame(10 + m)] },
      ],
      { at: t - m * MINUTE },
    )
  }
  const got = await pairs({ namespace: ns, minutes: 20 })
  const of = (c) => got.filter((p) => p.victim_container_uid === c.container_uid).map((p) => p.wait_ns)
  assert.deepEqual(
    of(many),
    Array.from({ length: 50 }, (_, i) => 1059 - i),
  )
  assert.deepEqual(of(few), [15, 14, 13, 12, 11, 10])
  assert.deepEqual([...new Set(got.map((p) => p.victim_container_uid))], [many.container_uid, few.container_uid].sort())
  assert.deepEqual(
    got.map((p) => p.victim_container_uid),
    got.map((p) => p.victim_container_uid).sort(),
    'a victim is in one piece',
  )
})

// ---- settings

check('compute: with 0 days of history nothing of it is stored, gauges and heartbeats are', async () => {
  const { o, t } = await another({ COMPUTE_HISTORY_RETENTION_DAYS: '0' })
  const ns = unique('off')
  const c = computeMinute({ ns, blame: [computeBlame(900)] })
  assert.deepEqual(await minutes([c], { node: 'node-off' }, t), { accepted: 0 })
  assert.deepEqual(await history(c, {}, t), [])
  assert.deepEqual(await pairs({ node: 'node-off' }, t), [])
  assert.deepEqual(await sample([computeSample({ ns })], { node: 'node-off' }, t), { accepted: 1 })
  assert.equal((await latest(ns, t)).containers.length, 1)
  beaten(await nodeStatus('node-off', o))
  await o.stop()
})

check('compute: reads are answered whole or shed by the read budget', async () => {
  const { o, t } = await another({ BROKER_READ_MEMORY_BUDGET_MB: '1', BROKER_READ_ACQUIRE_WAIT_MS: '0' })
  const ns = unique('tight')
  const c = computeMinute({ ns, blame: [computeBlame(5)] })
  await minutes([c], {}, t)
  await sample([computeSample({ ns })], {}, t)
  for (const [path, count] of [
    [`/compute/latest?namespace=${ns}`, (j) => j.containers.length],
    [`/compute/history/${c.pod_uid}?minutes=10080`, (j) => j.rows.length],
    [`/compute/contention?namespace=${ns}`, (j) => j.pairs.length],
  ]) {
    let whole = 0
    let shed = 0
    await eventually(
      async () => {
        for (const r of await Promise.all(Array.from({ length: 40 }, () => o.get(path)))) {
          if (r.status === 200) {
            whole += 1
            assert.equal(count(r.json), 1)
            continue
          }
          shed += 1
          refused(r, 503, path)
          assert.match(r.headers.get('retry-after') ?? '', /^\d+$/, path)
        }
        return whole && shed
      },
      { timeoutMs: 15_000, what: `a whole and a shed answer of ${path}` },
    )
  }
  await o.stop()
})

// ---- jobs

let jobs
/** A broker whose history the jobs below work on. */
const kept = () => (jobs ??= another({}))
const run = async (c, o, name, env) => {
  const done = await computeJob(o, name, { env })
  if (!done) {
    c.skip('no dist/jobs/run.js beside BROKER_CMD')
    return false
  }
  assert.equal(done.code, 0, `${name}: ${done.log.slice(-1500)}`)
  return true
}

check('compute: minutes past their hours are folded into rows of five minutes', async (c) => {
  const { o, t } = await kept()
  const ns = unique('fold')
  const start = Math.floor((now() - 3 * HOUR) / (5 * MINUTE)) * 5 * MINUTE
  const app = computeMinute({ ns, pod: 'p', container: 'app' })
  const side = computeMinute({ ns, pod: 'p', container: 'side' })
  const hist = (...first) => [...first, ...Array(24 - first.length).fill(0)]
  const gauge = (avg, max, last) => ({ avg, max, last })
  const first = {
    cpu: {
      ...app.cpu,
      usage_millis: gauge(100, 400, 300),
      psi_some10: gauge(2, 30),
      quota_usec: 100_000,
      nr_throttled: 1,
    },
    memory: { ...app.memory, current: gauge(1000, 9000, 2000), refault: 5, oom_kill: 0 },
    runq: computeRunq({ count: 10, p50_us: 50, p99_us: 9000, hist: hist(1, 2, 7) }),
  }
  const second = {
    cpu: {
      ...app.cpu,
      usage_millis: gauge(200, 300, 250),
      psi_some10: gauge(4, 10),
      quota_usec: 150_000,
      nr_throttled: 2,
    },
    memory: { ...app.memory, current: gauge(3000, 4000, 3500), refault: 6, oom_kill: 1 },
    runq: computeRunq({ count: 20, p50_us: 60, p99_us: 100, overflow: 3, hist: hist(0, 4, 1) }),
  }
  const third = {
    cpu: {
      ...app.cpu,
      usage_millis: gauge(600, 700, 50),
      psi_some10: gauge(6, 20),
      quota_usec: 300_000,
      nr_throttled: 4,
    },
    memory: { ...app.memory, current: gauge(5000, 6000, 5500), refault: 7, oom_kill: 0 },
    runq: computeRunq({ count: 30, p50_us: 40, p99_us: 700, overflow: 1, hist: hist(3) }),
  }
  await minutes([{ ...app, ...third }], { at: start + 4 * MINUTE }, t)
  await minutes([{ ...app, ...first }, side], { at: start }, t)
  await minutes([{ ...app, ...second }], { at: start + MINUTE }, t)
  await minutes([app], { at: start + 5 * MINUTE }, t)
  const late = now() - 20 * MINUTE
  await minutes([app], { at: late }, t)
  if (!(await run(c, o, 'compute-fold', { COMPUTE_HISTORY_MINUTE_HOURS: '1' }))) return
  const rows = await history(app, { minutes: 300 }, t)
  assert.deepEqual(
    rows.map((r) => [r.container, r.ts, r.resolution_secs].join()).sort(),
    [
      ['app', rfcWhole(start), 300],
      ['app', rfcWhole(start + 5 * MINUTE), 300],
      ['app', rfcWhole(late), 60],
      ['side', rfcWhole(start), 300],
    ]
      .map((x) => x.join())
      .sort(),
  )
  assert.deepEqual(
    rows.map((r) => r.ts),
    rows.map((r) => r.ts).sort(),
    'oldest first at whatever resolution',
  )
  const one = rows.find((r) => r.container === 'app' && r.ts === rfcWhole(start))
  const expected = {
    cpu_usage_millis_avg: 300,
    cpu_usage_millis_max: 700,
    cpu_usage_millis_last: 50,
    cpu_psi_some10_avg: 4,
    cpu_psi_some10_max: 30,
    cpu_quota_usec: 300_000,
    cpu_nr_periods: 1800,
    cpu_nr_throttled: 7,
    cpu_throttled_usec: 270_000,
    mem_current_avg: 3000,
    mem_current_max: 9000,
    mem_current_last: 5500,
    mem_events_high: 9,
    mem_events_max: 6,
    mem_oom_kill: 1,
    mem_refault: 18,
    mem_pgmajfault: 27,
    runq_count: 60,
    runq_p50_us: 60,
    runq_p99_us: 9000,
    runq_max_us: 4000,
    runq_overflow: 4,
  }
  for (const [k, v] of Object.entries(expected)) near(one[k], v, k)
  assert.deepEqual(one.runq_hist, hist(4, 6, 8))
  const alone = rows.find((r) => r.container === 'side')
  assert.deepEqual(without(alone, 'id'), {
    ...identity(side, 'node-a'),
    ts: rfcWhole(start),
    ...HISTORY_ROW,
    ...NO_RUNQ,
    resolution_secs: 300,
  })
  if (!(await run(c, o, 'compute-fold', { COMPUTE_HISTORY_MINUTE_HOURS: '1' }))) return
  assert.deepEqual(await history(app, { minutes: 300 }, t), rows, 'a second run finds nothing to do')
})

check('compute: a day of minutes is kept by default', async (c) => {
  const { o, t } = await kept()
  const x = computeMinute({ ns: unique('day') })
  for (const ago of [23 * HOUR, 26 * HOUR]) await minutes([x], { at: now() - ago }, t)
  if (!(await run(c, o, 'compute-fold', {}))) return
  assert.deepEqual(
    (await history(x, { minutes: 2000 }, t)).map((r) => r.resolution_secs),
    [300, 60],
  )
})

check('compute: history and pairs past their days are pruned', async (c) => {
  const { o, t } = await kept()
  const node = unique('node')
  const x = computeMinute({ ns: unique('prune') })
  const at = now()
  for (const [ago, wait] of [
    [10 * HOUR, 1],
    [80 * HOUR, 2],
  ])
    await minutes([{ ...x, blame: [computeBlame(wait)] }], { at: at - ago, node }, t)
  const left = async () => [
    (await history(x, { minutes: 10_080 }, t)).length,
    (await pairs({ node, minutes: 10_080 }, t)).map((p) => p.wait_ns),
  ]
  assert.deepEqual(await left(), [2, [2, 1]])
  if (!(await run(c, o, 'compute-retention', {}))) return
  assert.deepEqual(await left(), [2, [2, 1]], 'seven days by default')
  if (!(await run(c, o, 'compute-retention', { COMPUTE_HISTORY_RETENTION_DAYS: '0' }))) return
  assert.deepEqual(await left(), [2, [2, 1]], '0 does not prune')
  if (!(await run(c, o, 'compute-retention', { COMPUTE_HISTORY_RETENTION_DAYS: '1' }))) return
  assert.deepEqual(await left(), [1, [1]])
})

check('compute: a gauge that fell silent is not live, node rows stay an hour, with history off too', async (c) => {
  pg ??= await postgres()
  if (!pg) return c.skip('no PostgreSQL server programs found')
  const { o, t } = await another({ DATABASE_URL: pg.url })
  const ns = unique('aged')
  const prune = (days) => run(c, o, 'compute-retention', { DATABASE_URL: pg.url, COMPUTE_HISTORY_RETENTION_DAYS: days })
  ok(await o.post('/pod/spec', pod({ ns, node_name: 'node-pods' })))
  for (const node of ['node-pods', 'node-beat'])
    await sample(node === 'node-pods' ? [computeSample({ ns, pod: 'old' })] : [], { node }, t)
  await pg.age(540)
  await sample([computeSample({ ns, pod: 'young' })], { node: 'node-young' }, t)
  if (!(await prune('7'))) return
  assert.deepEqual(
    (await latest(ns, t)).containers.map((r) => r.pod_name),
    ['young'],
  )
  await pg.age(50)
  await prune('0')
  assert.deepEqual(
    (await latest(ns, t)).containers.map((r) => r.pod_name),
    ['young'],
  )
  assert.deepEqual(
    (await nodes(t)).map((n) => n.node),
    ['node-beat', 'node-pods', 'node-young'],
  )
  await pg.age(2920)
  await sample([], { node: 'node-young' }, t)
  await prune('0')
  assert.equal((await nodes(t)).length, 3)
  await pg.age(100)
  await prune('0')
  assert.deepEqual(
    (await nodes(t)).map((n) => n.node),
    ['node-young'],
  )
  assert.equal(await nodeStatus('node-beat', o), undefined, 'nothing is left of a node that only beat')
  assert.equal((await nodeStatus('node-pods', o)).lastHeartbeatAt, null)
  await o.stop()
})
