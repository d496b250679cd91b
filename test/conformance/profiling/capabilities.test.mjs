// Linux capabilities: what a post stores, merges and drops, the evidence and its reasons, recommendations, retention.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  digest,
  heartbeat,
  inOrder,
  naiveIn,
  naiveTime,
  ok,
  plainly,
  pod,
  postgres,
  profiling,
  refused,
  computeJob as runJob,
  running,
  sameTime,
  unique,
} from '../lib/profiling.mjs'
import { rawPost } from '../lib/supply-chain.mjs'

let b
let pg = null
const cleanups = []
before(async () => {
  b = await startBroker()
})
after(async () => {
  for (const stop of cleanups.reverse()) await stop().catch(() => {})
  await b?.stop()
  await pg?.stop()
})
const another = async (env) => {
  const o = await startBroker({ env })
  cleanups.push(() => o.stop())
  return o
}

const HOUR = 3600
const PATH = '/runtime/capabilities'
const ROUTE = [
  ...['container', 'digests', 'evidence', 'reason', 'reasonDetail', 'observedSince', 'used', 'denied', 'probed'],
  ...['recommendation', 'unusedAdded'],
]

/** A workload with one container that runs in one pod, and makers of what its agent reports: watched without a fault. */
async function target({ security = {}, kind = 'regular', beat = {}, to = b } = {}) {
  const ns = unique('cap')
  const [image, podName] = [digest(ns), `${ns}-0`]
  const post = pod({ ns, name: podName, containers: [running('app', image, { kind, security_context: security })] })
  await profiling(to).pods(post)
  const who = {
    ...{ pod_namespace: ns, pod_name: podName, workload_kind: 'Deployment', workload_name: 'web' },
    ...{ container_name: 'app', image_digest: image },
  }
  const w = {
    ...{ ns, image, podName },
    beat: (over) =>
      heartbeat({ ...who, tracking_since: naiveIn(-200 * HOUR), cap_probe: true, cap_hook: 'cap_capable', ...over }),
    seen: (capability, over) => ({
      ...who,
      ...{ capability, granted: true, count: 1, first_seen: naiveIn(-90), last_seen: naiveIn(-60), ...over },
    }),
  }
  if (beat) ok(await profiling(to).heartbeats([w.beat(beat)]))
  return w
}
const post = async (...entries) => ok(await b.post(PATH, entries)).json
const path = (ns, name = 'web', kind = 'Deployment') =>
  `/workloads/${[ns, kind, name].map(encodeURIComponent).join('/')}/capabilities`
const read = async (w, to = b) => ok(await to.get(path(w.ns))).json
const container = async (w, to) => {
  const { containers } = await read(w, to)
  assert.equal(containers.length, 1, 'one container')
  return containers[0]
}

check('capabilities: the route has the keys of the sheet in their order', async () => {
  const w = await target({ security: { capabilitiesAdd: ['NET_ADMIN', 'CHOWN', 'ALL'] } })
  await post(
    w.seen('CHOWN', { count: 2 }),
    w.seen('NET_RAW', { granted: false }),
    w.seen('SYS_ADMIN', { probed: true }),
    w.seen('SETUID', { probed: true }),
    w.seen('KILL', { granted: false, probed: true }),
  )
  const got = await read(w)
  inOrder(got, ['windowHours', 'containers'])
  assert.equal(got.windowHours, 168)
  const [c] = got.containers
  inOrder(c, ROUTE)
  assert.deepEqual([c.container, c.digests, c.evidence, c.reason], ['app', [w.image], 'sufficient', null])
  assert.match(c.observedSince, naiveTime)
  for (const one of [...c.used, ...c.denied, ...c.probed]) {
    inOrder(one, ['capability', 'count', 'firstSeen', 'lastSeen'])
    for (const time of [one.firstSeen, one.lastSeen]) assert.match(time, naiveTime)
  }
  const names = (list) => list.map(({ capability }) => capability)
  assert.deepEqual([c.used, c.denied, c.probed].map(names), [['CHOWN'], ['NET_RAW'], ['SETUID', 'SYS_ADMIN']])
  inOrder(c.recommendation, ['drop', 'add', 'probedKept', 'probedOmitted', 'requires'])
  const { probedOmitted, ...rest } = c.recommendation
  assert.deepEqual(rest, {
    ...{ drop: ['ALL'], add: ['CHOWN', 'SETUID'], probedKept: ['SETUID'] },
    requires: { allowPrivilegeEscalation: false },
  })
  inOrder(probedOmitted[0], ['capability', 'reason'])
  assert.deepEqual([probedOmitted.length, probedOmitted[0].capability], [1, 'SYS_ADMIN'])
  assert.deepEqual(c.unusedAdded, ['NET_ADMIN'])
})

check('capabilities: an unknown workload is 200 without containers; a blank, long or split part is 400', async () => {
  assert.equal(ok(await b.get(path(unique('nobody')))).text, '{"windowHours":168,"containers":[]}')
  for (const parts of [
    [' ', 'web', 'Deployment'],
    ['shop', 'n'.repeat(254), 'Deployment'],
    ['shop', 'web', 'a/b'],
  ])
    plainly(await b.get(path(...parts)), 400, parts.join())
})

check('capabilities: counts add within a post and between posts, with the first and the last time', async () => {
  const w = await target()
  const [first, early, late] = [naiveIn(-900), naiveIn(-600), naiveIn(-30)]
  const one = w.seen('CHOWN', { count: 3, first_seen: early, last_seen: early })
  const two = w.seen('CHOWN', { count: 40, first_seen: first, last_seen: late, pod_name: undefined })
  assert.deepEqual(await post(one, two), { accepted: 1, dropped: 0, written: 1 })
  assert.deepEqual(await post(w.seen('CHOWN', { count: 0 })), { accepted: 1, dropped: 0, written: 1 })
  assert.deepEqual(await post(one, w.seen('CHOWN', { image_digest: '', count: 100 })), {
    ...{ accepted: 2, dropped: 0, written: 2 },
  })
  const [used] = (await container(w)).used
  assert.equal(used.count, 146)
  sameTime(used.firstSeen, first)
  sameTime(used.lastSeen, late)
})

check('capabilities: times are clamped: the first to the last, both to now', async () => {
  const w = await target()
  const [before, past] = [Date.now(), naiveIn(-60)]
  await post(
    w.seen('CHOWN', { first_seen: naiveIn(-5), last_seen: past }),
    w.seen('KILL', { first_seen: naiveIn(9 * HOUR), last_seen: naiveIn(9 * HOUR) }),
  )
  const [chown, kill] = (await container(w)).used
  sameTime(chown.firstSeen, past)
  assert.equal(kill.firstSeen, kill.lastSeen)
  const at = Date.parse(`${kill.lastSeen}Z`)
  assert.ok(at >= before - 1_000 && at <= Date.now() + 1_000, 'now')
})

check('capabilities: a bad entry is dropped and counted, the others are stored', async () => {
  const w = await target()
  const bad = [
    ...[null, 7, 'x', []],
    ...['net_admin', 'A'.repeat(33), '', 'A B', 7].map((name) => w.seen(name)),
    ...[-1, 0.5, '1', null].map((count) => w.seen('CHOWN', { count })),
    ...[
      ...['pod_namespace', 'workload_kind', 'workload_name', 'container_name'].flatMap((field) =>
        [undefined, null, '', ' a', 'a\0', 'n'.repeat(254)].map((value) => ({ [field]: value })),
      ),
      ...[{ pod_name: '' }, { pod_name: 7 }, { workload_kind: 'k'.repeat(64) }, { image_digest: 'latest' }],
      ...[{ granted: undefined }, { granted: 1 }, { probed: 'no' }, { first_seen: undefined }],
      ...[{ last_seen: 'soon' }, { last_seen: '2026-01-01T00:00:00Z' }],
    ].map((over) => w.seen('CHOWN', over)),
  ]
  const good = [w.seen('KILL'), w.seen('CAP_63', { count: 0 })]
  assert.deepEqual(await post(good[0], ...bad, good[1]), { accepted: 2, dropped: bad.length, written: 2 })
  assert.deepEqual(
    (await container(w)).used.map(({ capability }) => capability),
    ['CAP_63', 'KILL'],
  )
})

check('capabilities: the largest count is accepted, one beyond 64 bits is not', async () => {
  const w = await target()
  const text = (count) => JSON.stringify([w.seen('CHOWN', { count: 4_711 })]).replace('4711', count)
  const send = (body) => b.request('POST', PATH, { raw: true, body, headers: { 'content-type': 'application/json' } })
  assert.equal(ok(await send(text('9223372036854775807'))).json.accepted, 1)
  assert.equal(ok(await send(text('9223372036854775807'))).json.accepted, 1)
  assert.equal(ok(await send(text('99223372036854775807'))).json.dropped, 1)
  assert.ok((await container(w)).used[0].count >= Number.MAX_SAFE_INTEGER)
})

check('capabilities: the post wants a list of at most 5000, in 4 MiB; else nothing is written', async () => {
  const w = await target()
  const send = (body) => b.request('POST', PATH, { raw: true, body, headers: { 'content-type': 'application/json' } })
  for (const body of ['{}', 'null', '"x"', '[{"a":', '']) refused(await send(body), 400, body)
  const many = (n) => Array.from({ length: n }, (_, i) => w.seen(`CAP_${i}`))
  refused(await b.post(PATH, many(5001)), 413)
  const large = JSON.stringify([w.seen('CHOWN')]).padEnd(4_194_305)
  refused(
    await rawPost(b, PATH, { token: '', headers: { 'content-length': String(large.length) }, pieces: [large] }),
    413,
  )
  assert.deepEqual((await container(w)).used, [])
  assert.equal(ok(await send(large.slice(0, -1))).json.accepted, 1)
  assert.deepEqual(await post(...many(4999)), { accepted: 4999, dropped: 0, written: 4999 })
  assert.equal((await container(w)).reason, null, '5000 rows')
  await post(w.seen('ONE_MORE'))
  const cut = await container(w)
  assert.deepEqual([cut.reason, cut.evidence, cut.recommendation], ['rows_truncated', 'insufficient', null])
})

const REASONS = [
  [null, {}],
  ['no_runtime_data', null],
  ['probes_missing', { exec_probe: false }],
  ['libraries_not_tracked', { mode: 'exec' }],
  ['events_dropped', { events_dropped: 1 }],
  ['events_pending', { unsent: 1 }],
  ['incomplete_paths', { incomplete: true }],
  ['capture_gap', { tracking_since: naiveIn(-160 * HOUR), cap_probe: false }],
  ['capabilities_not_tracked', { cap_probe: false, cap_hook: null, start_mode: 'backfill' }],
  ['capabilities_not_tracked', { cap_probe: undefined, cap_hook: undefined }],
  ['capabilities_partial_hook', { cap_hook: 'security_capable', start_mode: 'backfill' }],
  ['capabilities_partial_hook', { cap_hook: null }],
  ['capabilities_not_seen_since_start', { start_mode: 'backfill' }],
]
for (const [reason, beat] of REASONS)
  check(
    `capabilities: the evidence of a container with ${JSON.stringify(beat)} is ${reason ?? 'sufficient'}`,
    async () => {
      const w = await target({ beat, security: { capabilitiesAdd: ['CHOWN'] } })
      await post(w.seen('KILL'))
      const c = await container(w)
      assert.deepEqual([c.reason, c.evidence], [reason, reason === null ? 'sufficient' : 'insufficient'])
      assert.deepEqual([c.recommendation === null, c.unusedAdded], [reason !== null, reason === null ? ['CHOWN'] : []])
      assert.equal(c.used.length, 1)
      assert.equal(c.observedSince === null, beat === null)
    },
  )

check('capabilities: a changed probe ends the evidence of a container, not its coverage', async () => {
  for (const over of [{ cap_probe: false }, { cap_hook: 'security_capable' }]) {
    const w = await target({ beat: null })
    const one = w.beat({ heartbeat_secs: 86_400 })
    const changedAt = naiveIn(-HOUR)
    for (const beat of [
      { ...one, ...over, heartbeat_at: naiveIn(-2 * HOUR) },
      { ...one, heartbeat_at: changedAt },
      { ...one, heartbeat_at: naiveIn(-1) },
    ])
      ok(await profiling(b).heartbeats([beat]))
    const c = await container(w)
    assert.equal(c.reason, 'capabilities_not_seen_since_start')
    sameTime(c.observedSince, changedAt)
    const { coverage } = ok(await profiling(b).runtime({ ns: w.ns, name: 'web' }, { window_hours: 168 })).json
    assert.deepEqual([coverage[0].covered, coverage[0].reason], [true, null])
    sameTime(coverage[0].observedSince, one.tracking_since)
  }
})

check('capabilities: a heartbeat with a probe or function of another kind is dropped', async () => {
  const w = await target({ beat: null })
  const bad = [{ cap_probe: 'x' }, { cap_probe: 1 }, { cap_hook: 'x' }, { cap_hook: 7 }]
  const answer = ok(await profiling(b).heartbeats([...bad.map(w.beat), w.beat()])).json
  assert.deepEqual(answer, { accepted: 1, dropped: bad.length, written: 1 })
})

check(
  'capabilities: a container that does not run has no digests; SYS_ADMIN stays where it cannot be avoided',
  async () => {
    const gone = await target()
    await post(gone.seen('CHOWN'))
    ok(
      await b.post(
        '/pod/spec',
        pod({ ns: gone.ns, name: gone.podName, containers: [running('app', gone.image, { state: 'terminated' })] }),
      ),
    )
    const c = await container(gone)
    assert.deepEqual([c.digests, c.reason, c.used.length], [[], 'no_current_digest', 1])
    for (const shape of [{ security: { privileged: true } }, { kind: 'ephemeral' }]) {
      const w = await target(shape)
      await post(w.seen('SYS_ADMIN', { probed: true }))
      const { recommendation } = await container(w)
      assert.deepEqual(recommendation, {
        ...{ drop: ['ALL'], add: ['SYS_ADMIN'], probedKept: ['SYS_ADMIN'], probedOmitted: [] },
      })
    }
  },
)

check('capabilities: retention goes by the last report, and lasts longer than the window', async (c) => {
  pg ??= await postgres()
  if (!pg) return c.skip('no PostgreSQL server programs found')
  const o = await another({ DATABASE_URL: pg.url, JOBS: 'external', RUNTIME_INVENTORY_RETENTION_DAYS: '1' })
  const w = await target({ to: o })
  ok(await o.post(PATH, [w.seen('OLD'), w.seen('YOUNG', { last_seen: naiveIn(-400 * 24 * HOUR) })]))
  const days = (name, n) =>
    pg.sql(
      `update runtime_capability set last_reported = last_reported - interval '${n} days' where capability = '${name}'`,
    )
  await days('OLD', 8.01)
  await days('YOUNG', 7.99)
  const names = async () => (await container(w, o)).used.map(({ capability }) => capability)
  assert.deepEqual(await names(), ['YOUNG'])
  const done = await runJob(o, 'runtime-retention', {
    env: { DATABASE_URL: pg.url, RUNTIME_INVENTORY_RETENTION_DAYS: '1' },
  })
  if (!done) return c.skip('no dist/jobs/run.js beside BROKER_CMD')
  assert.equal(done.code, 0, done.log)
  const rows = await pg.sql('select capability from runtime_capability order by capability')
  assert.deepEqual(
    rows.map(({ capability }) => capability),
    ['YOUNG'],
  )
  await o.stop()
})
