import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { computeFold } from '../../jobs/compute-fold.ts'
import { judgeContainer } from '../../lib/compute/sizing/judge.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { podPost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'
import { keep, minute } from './minutes.ts'
import { type Fields, unique } from './posts.ts'
import {
  byContainer,
  bySettings,
  ESTIMATE_ERROR,
  inWindow,
  type Observed,
  percentile,
  type Settings,
  totalsOf,
} from './sizing-model.ts'

const app = await startApp()
const { sql } = app
const HOUR = 3_600
const DAY = 24 * HOUR
const GIB = 1_073_741_824
const NEVER = new AbortController().signal

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

beforeEach(reset)

async function reset() {
  await sql`truncate compute_minute, compute_folded, compute_container, compute_usage, compute_uncounted`
  await sql`update compute_fold set folded_until = '-infinity', closed_until = '-infinity', counted_until = '-infinity',
                                    count_closed_until = '-infinity'`
}

/** All lines at this time, as if all before it were rolled up and counted, so that a week is read from counts. */
async function drawLines(at: number) {
  const line = new Date(at * 1_000).toISOString().slice(0, -1)
  await sql`
    update compute_fold set counted_until = ${line}::text::timestamp, count_closed_until = ${line}::text::timestamp,
                            pack_after = '-infinity'`
}
const fold = () => computeFold.run({ config: app.deps.config, db: app.db, log: app.deps.log, signal: NEVER })
const pathOf = (namespace: string, name = 'web', kind = 'Deployment') =>
  `/compute/workloads/${[namespace, kind, name].map(encodeURIComponent).join('/')}`
async function sizing(namespace: string, query = '', name?: string, kind?: string): Promise<Json> {
  const answer = await app.get(`${pathOf(namespace, name, kind)}${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

/** Posts a pod of Deployment web, whose uid is `uid-<name>` as that of the minutes. */
async function pod(namespace: string, pod_name: string, fields: Fields = {}) {
  const pod_obj = { metadata: { name: pod_name, uid: `uid-${pod_name}` } }
  const owner = { workload_kind: 'Deployment', workload_name: 'web' }
  const time_stamp = new Date().toISOString().slice(0, -1)
  const body = podPost({ pod_name, pod_namespace: namespace, ...owner, pod_obj, time_stamp, ...fields })
  const answer = await app.post('/pod/spec', body)
  assert.equal(answer.status, 200, answer.text)
}

const gauge = (avg: number, max: number) => ({ avg, max, last: avg })
const DEFAULTS = {
  ...{ container: 'app', secs: 60, cpuAvg: 100, cpuMax: 200, memMax: 300_000_000, periods: 600, throttled: 30 },
  ...{ oomKills: 0, cpuRequestMillis: 250, cpuLimitMillis: 1_000, memRequestBytes: 268_435_456, memLimitBytes: GIB },
}
const observed = (fields: Partial<Observed> & Pick<Observed, 'pod' | 'at'>): Observed => ({ ...DEFAULTS, ...fields })
const postedOf = (namespace: string, row: Observed): Fields =>
  minute({
    ...{ namespace, pod_name: row.pod, container: row.container },
    cpu: {
      ...{ usage_millis: gauge(row.cpuAvg, row.cpuMax), request_millis: row.cpuRequestMillis },
      ...{ limit_millis: row.cpuLimitMillis, nr_periods: row.periods, nr_throttled: row.throttled },
    },
    memory: {
      ...{ working_set: gauge(row.memMax / 2, row.memMax), request: row.memRequestBytes, limit: row.memLimitBytes },
      ...{ oom_kill: row.oomKills },
    },
  })
/** Posts minutes of one time and length in one body, as a node does. */
const store = (namespace: string, rows: readonly Observed[]) =>
  keep(
    app,
    rows.map((row) => postedOf(namespace, row)),
    { ts: `${new Date(rows[0]!.at * 1_000).toISOString().slice(0, 19)}Z`, resolution_secs: rows[0]!.secs },
  )
/** Stores a row every so many seconds from a time on. */
async function storeEach(
  namespace: string,
  from: number,
  count: number,
  everySecs: number,
  of: (i: number) => Partial<Observed> & { pod: string },
) {
  for (let i = 0; i < count; i++) await store(namespace, [observed({ at: from + i * everySecs, secs: 240, ...of(i) })])
}
const nowSecs = () => Math.floor(Date.now() / 1_000)
/** The start of the day (UTC), `days` from today. */
const day = (days: number) => nowSecs() - (nowSecs() % DAY) + days * DAY
const newNamespace = () => unique('sizing')

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: every key in wire order, exact while minutes are stored', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'web-1')
  const from = day(-1) + HOUR
  await storeEach(namespace, from, 20, 300, (i) => ({
    pod: 'web-1',
    cpuAvg: 10 * (i + 1),
    memMax: 1_000 * (i + 1),
    cpuMax: 500,
  }))
  const got = await sizing(namespace, '?days=2')
  const time = (secs: number) => `${new Date(secs * 1_000).toISOString().slice(0, 19)}Z`
  const limits = { cpuRequestMillis: 250, cpuLimitMillis: 1_000, memRequestBytes: 268_435_456, memLimitBytes: GIB }
  assert.equal(
    JSON.stringify(got),
    JSON.stringify({
      ...{
        namespace,
        kind: 'Deployment',
        name: 'web',
        days: 2,
        since: time(day(-1)),
        until: got.until,
        minMinutes: 60,
      },
      maxRelativeError: 0,
      pods: { live: 1, liveUnobserved: 0, observed: 1 },
      containers: [
        {
          ...{ container: 'app', pods: 1, minutes: 80, observedShare: 4_800 / (19 * 300 + 60) },
          ...{ firstSeen: time(from), lastSeen: time(from + 19 * 300), current: limits },
          cpu: { p50Millis: 100, p95Millis: 190, p99Millis: 200, maxMillis: 500, throttledRatio: 0.05 },
          memory: { p50Bytes: 10_000, p95Bytes: 19_000, p99Bytes: 20_000, maxBytes: 20_000, oomKills: 0 },
          settings: [
            {
              ...limits,
              ...{ firstSeen: time(from), lastSeen: time(from + 19 * 300), minutes: 80, pods: 1, cpuMaxMillis: 500 },
              ...{ memMaxBytes: 20_000, throttledRatio: 0.05, oomKills: 0 },
            },
          ],
          settingsTruncated: false,
          fit: [
            { resource: 'cpu', rule: 'throttled', configured: 1_000, observed: 0.05 },
            { resource: 'memory', rule: 'requestOverP95', configured: 268_435_456, observed: 19_000 },
          ],
          reason: null,
        },
      ],
      truncated: false,
      reason: null,
    }),
  )
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: times are whole seconds, also of minutes that begin in a fraction', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'web-1')
  const at = new Date((day(0) - HOUR) * 1_000).toISOString().slice(0, 19)
  for (const fraction of ['', '.500'])
    await keep(app, [postedOf(namespace, observed({ pod: 'web-1', at: 0, cpuLimitMillis: fraction ? 900 : 1_000 }))], {
      ts: `${at}${fraction}Z`,
      resolution_secs: 60,
    })
  const [found] = (await sizing(namespace)).containers
  assert.deepEqual([found.firstSeen, found.lastSeen], [`${at}Z`, `${at}Z`])
  assert.deepEqual(
    found.settings.map((one: Json) => [one.firstSeen, one.lastSeen, one.cpuLimitMillis]),
    [
      [`${at}Z`, `${at}Z`, 900],
      [`${at}Z`, `${at}Z`, 1_000],
    ],
  )
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: an unknown workload, and one without minutes, say so', async () => {
  const namespace = newNamespace()
  for (const [name, kind] of [['web'], ['we%'], ['web', 'Pod']] as const) {
    const got = await sizing(namespace, '', name, kind)
    assert.deepEqual([got.containers, got.reason, got.days], [[], 'unknown_workload', 7])
  }
  await pod(namespace, 'web-1')
  await store(`${namespace}x`, [observed({ pod: 'web-1', at: day(0) })])
  const got = await sizing(namespace)
  assert.deepEqual(
    [got.containers, got.reason, got.pods],
    [[], 'no_samples', { live: 1, liveUnobserved: 1, observed: 0 }],
  )
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: pods that are gone count, also earlier ones of the same name, others do not', async () => {
  const namespace = newNamespace()
  const uidOf = (uid: string) => ({ pod_obj: { metadata: { name: 'web-0', uid } } })
  const at = (secs: number) => ({ time_stamp: new Date((nowSecs() + secs) * 1_000).toISOString().slice(0, -1) })
  await pod(namespace, 'web-0', { ...uidOf('foreign'), workload_name: 'other', ...at(-90) })
  await pod(namespace, 'web-0', { ...uidOf('first'), ...at(-60) })
  await pod(namespace, 'web-0', { ...uidOf('second'), ...at(-30) })
  await pod(namespace, 'web-old', { is_dead: true })
  await pod(namespace, 'other-1', { workload_name: 'other' })
  await pod(namespace, 'web-silent')
  const of = (pod_name: string, pod_uid: string) => ({
    ...postedOf(namespace, observed({ pod: pod_name, at: 0 })),
    ...{ pod_uid, container_uid: `${pod_uid}/app` },
  })
  await keep(app, [
    of('web-0', 'foreign'),
    of('web-0', 'first'),
    of('web-0', 'second'),
    of('web-old', 'uid-web-old'),
    of('other-1', 'uid-other-1'),
  ])
  const got = await sizing(namespace)
  assert.deepEqual(got.pods, { live: 2, liveUnobserved: 1, observed: 3 })
  assert.deepEqual([got.containers[0].pods, got.containers[0].minutes], [3, 3])
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: a pod without a whole owner is its own workload, and a pod without a uid is known by its name', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'bare', { workload_kind: undefined, workload_name: undefined })
  await pod(namespace, 'half', { workload_kind: 'ReplicaSet', workload_name: undefined })
  await pod(namespace, 'blank', { workload_kind: ' ', workload_name: 'x' })
  await pod(namespace, 'nameless', { pod_obj: undefined })
  await store(namespace, [
    ...['bare', 'half', 'blank'].map((one) => observed({ pod: one, at: day(0) })),
    observed({ pod: 'nameless', at: day(0), container: 'n' }),
  ])
  for (const one of ['bare', 'half', 'blank'])
    assert.deepEqual((await sizing(namespace, '', one, 'Pod')).pods, { live: 1, liveUnobserved: 0, observed: 1 })
  const got = await sizing(namespace)
  assert.deepEqual(got.pods, { live: 1, liveUnobserved: 0, observed: 1 })
  assert.deepEqual(
    got.containers.map((one: Json) => one.container),
    ['n'],
  )
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: fewer than 60 minutes give no percentiles and no judgement', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'web-1')
  await storeEach(namespace, day(-1), 14, 300, () => ({ pod: 'web-1', oomKills: 1 }))
  const few = (await sizing(namespace)).containers[0]
  assert.deepEqual([few.minutes, few.fit, few.reason], [56, null, 'too_few_minutes'])
  assert.deepEqual([few.cpu.p50Millis, few.memory.p99Bytes, few.cpu.maxMillis], [null, null, 200])
  await store(namespace, [observed({ pod: 'web-1', at: day(-1) + 2 * HOUR, secs: 240 })])
  const enough = (await sizing(namespace)).containers[0]
  assert.deepEqual([enough.minutes, enough.reason, enough.cpu.p50Millis, enough.memory.oomKills], [60, null, 100, 14])
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: each rule of `fit` holds exactly as written', async () => {
  const cases: [Partial<Settings> & Partial<Observed>, string[]][] = [
    [{ throttled: 0, cpuRequestMillis: 150, memRequestBytes: 300_000_000 }, []],
    [{ throttled: 0, cpuRequestMillis: 100, memRequestBytes: 300_000_000 }, []],
    [
      { throttled: 0, cpuRequestMillis: 99, memRequestBytes: 299_999_999 },
      ['cpu requestUnderP95', 'memory requestUnderP95'],
    ],
    [
      { throttled: 0, cpuRequestMillis: 200, memRequestBytes: 600_000_000 },
      ['cpu requestOverP95', 'memory requestOverP95'],
    ],
    [{ throttled: 0, cpuRequestMillis: 199, memRequestBytes: 599_999_999 }, []],
    [
      { throttled: 0, cpuRequestMillis: null, cpuLimitMillis: null, memRequestBytes: null, memLimitBytes: null },
      ['cpu noRequest', 'memory noRequest', 'memory noLimit'],
    ],
    [
      {
        cpuRequestMillis: 150,
        memRequestBytes: 300_000_000,
        cpuLimitMillis: 199,
        memLimitBytes: 299_999_999,
        oomKills: 2,
      },
      ['cpu limitUnderMax', 'cpu throttled', 'memory limitUnderMax', 'memory oomKilled'],
    ],
    [{ throttled: 0, periods: 0, cpuRequestMillis: 150, memRequestBytes: 300_000_000, cpuLimitMillis: 200 }, []],
  ]
  for (const [fields, rules] of cases) {
    const namespace = newNamespace()
    await pod(namespace, 'web-1')
    const rows = Array.from({ length: 15 }, (_, i) =>
      observed({ at: day(0) - DAY + i * 300, secs: 240, pod: 'web-1', ...fields }),
    )
    for (const row of rows) await store(namespace, [row])
    const [one] = (await sizing(namespace, '?days=2')).containers
    assert.deepEqual(
      one.fit.map((fit: Json) => `${fit.resource} ${fit.rule}`),
      rules,
      JSON.stringify(fields),
    )
    await reset()
  }
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: the newest settings are judged, earlier ones are listed with their time', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'web-1')
  await pod(namespace, 'web-2')
  await storeEach(namespace, day(-1), 15, 300, () => ({ pod: 'web-1', cpuLimitMillis: 150, throttled: 300 }))
  await storeEach(namespace, day(-1) + 3 * HOUR, 15, 300, () => ({
    pod: 'web-2',
    cpuLimitMillis: null,
    periods: 0,
    throttled: 0,
  }))
  const [one] = (await sizing(namespace)).containers
  assert.deepEqual(
    one.settings.map((setting: Json) => [
      setting.cpuLimitMillis,
      setting.pods,
      setting.minutes,
      setting.throttledRatio,
    ]),
    [
      [null, 1, 60, null],
      [150, 1, 60, 0.5],
    ],
  )
  assert.equal(one.current.cpuLimitMillis, null)
  assert.equal(one.cpu.throttledRatio, 0.5)
  assert.ok(!one.fit.some(({ rule }: Json) => rule === 'throttled'), 'not under the present limit')
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: with 0 days of history nothing is read', async () => {
  const off = await startApp({ COMPUTE_HISTORY_RETENTION_DAYS: '0' })
  const answer = await off.get(pathOf('shop'))
  assert.deepEqual(
    [answer.status, answer.json.reason, answer.json.days, answer.json.since],
    [200, 'history_disabled', 0, null],
  )
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: days are clamped, and no more than history is kept', async () => {
  const days = async (query: string) => (await sizing('nowhere', query)).days
  assert.deepEqual(
    await Promise.all(['', '?days=3', '?days=0', '?days=-1', '?days=8', '?days=999999'].map(days)),
    [7, 3, 1, 1, 7, 7],
  )
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: an open minute outside the window does not count', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'web-1')
  await store(namespace, [observed({ pod: 'web-1', at: day(-1) - 1 })])
  await store(namespace, [observed({ pod: 'web-1', at: day(-1) })])
  for (const isFolded of [false, true]) {
    if (isFolded) await fold()
    assert.equal((await sizing(namespace, '?days=2')).containers[0].minutes, 1)
    assert.equal((await sizing(namespace, '?days=3')).containers[0].minutes, 2)
    assert.equal((await sizing(namespace, '?days=1')).reason, 'no_samples')
  }
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: rows of other workloads are not read, whatever the planner estimates', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'web-1')
  for (const i of [0, 1, 2]) await store(namespace, [observed({ pod: 'web-1', at: nowSecs() - 60 * i })])
  const reads = async () => {
    const [row] = await app.db.read(
      (of) => of`explain (analyze, buffers, format json, timing off, summary off)
        select workload_usage(${namespace}, 'Deployment', 'web', 7, 2000, 1000, 20000)`,
    )
    const [{ Plan: plan }] = row!['QUERY PLAN'] as [{ Plan: Record<string, number> }]
    return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
  }
  // The first plans of a connection read the catalog.
  const settled = async () => {
    for (let i = 0; i < 2 * app.deps.config.dbPoolMaxSize; i++) await reads()
    return reads()
  }
  const alone = await settled()
  await sql`
    insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
    select 'other-' || n, 'other-' || n, ${namespace}, 'other-' || n, 'app', 'node-a' from generate_series(1, 2000) n`
  await sql`
    insert into compute_minute
    select (json_populate_record(m, json_build_object('container_id', c.id))).*
    from compute_minute m join compute_container c on c.pod_name like 'other-%'`
  await sql`
    insert into compute_usage
    select c.id, d.day, null, null, null, null, d.day, d.day, 60, 1, 1, 0, 0, 0, '{}', '{}'
    from compute_container c
    cross join generate_series((now() at time zone 'utc')::date - 6, now() at time zone 'utc', interval '1 day') d(day)`
  for (const step of [
    () => sql`select 1`,
    () => sql`vacuum analyze compute_minute, compute_usage, compute_container`,
  ]) {
    await step()
    const pages = await settled()
    assert.ok(pages <= alone + 100, `${pages} pages, ${alone} without the others`)
  }
})

/** A post of some containers of some pods at a time, a repeated post, or a pass of the job. */
type Step = { kind: 'post'; rows: readonly Observed[] } | { kind: 'again'; which: number } | { kind: 'fold' }

const settings: fc.Arbitrary<Settings> = fc.record({
  cpuRequestMillis: fc.constantFrom(null, 0, 100, 250),
  cpuLimitMillis: fc.constantFrom(null, 500),
  memRequestBytes: fc.constantFrom(null, 268_435_456),
  memLimitBytes: fc.constantFrom(null, GIB),
})
const steps: fc.Arbitrary<Step[]> = fc
  .record({
    rollouts: fc.array(settings, { minLength: 1, maxLength: 3 }),
    steps: fc.array(
      fc.oneof(
        {
          weight: 12,
          arbitrary: fc.record({
            kind: fc.constant('post' as const),
            minutesAgo: fc.oneof(fc.nat(300), fc.nat(7 * 1_440)),
            secs: fc.constantFrom(60, 240, 299),
            rows: fc.uniqueArray(
              fc.record({
                pod: fc.constantFrom('web-1', 'web-2', 'web-3'),
                container: fc.constantFrom('app', 'app', 'side'),
                rollout: fc.nat(2),
                cpuAvg: fc.oneof(fc.constantFrom(0, 0.25, 1, 1_024), fc.double({ min: 0, max: 4_000, noNaN: true })),
                memMax: fc.oneof(fc.constantFrom(0, 1), fc.nat(2_000_000_000)),
                throttled: fc.nat(600),
                oomKills: fc.constantFrom(0, 0, 0, 1),
              }),
              { minLength: 1, maxLength: 5, selector: ({ pod, container }) => `${pod}/${container}` },
            ),
          }),
        },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant('again' as const), which: fc.nat(30) }) },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant('fold' as const) }) },
      ),
      { minLength: 12, maxLength: 30, size: 'max' },
    ),
  })
  .map(({ rollouts, steps }) =>
    steps.map((step): Step => {
      if (step.kind !== 'post') return step
      const at = nowSecs() - (nowSecs() % 60) - step.minutesAgo * 60
      return {
        kind: 'post',
        rows: step.rows.map(({ rollout, ...row }) =>
          observed({ at, secs: step.secs, cpuMax: row.cpuAvg + 1, ...row, ...rollouts[rollout % rollouts.length]! }),
        ),
      }
    }),
  )

/** An estimate is the exact value or above it, by no more than the contract allows. */
function assertNear(got: number, exact: number, isEstimate: boolean, what: string): void {
  if (!isEstimate) assert.ok(Math.abs(got - exact) <= 1e-9 * Math.abs(exact), `${what}: ${got}, not ${exact}`)
  else {
    const most = Math.max(1, exact * (1 + ESTIMATE_ERROR))
    assert.ok(got >= exact * (1 - 1e-9) && got <= most * (1 + 1e-9), `${what}: ${got} for ${exact}`)
  }
}

function assertSized(got: Json, rows: readonly Observed[]): void {
  const isEstimate = got.maxRelativeError > 0
  const wanted = byContainer(rows)
  assert.deepEqual(
    got.containers.map((one: Json) => one.container),
    [...wanted.keys()],
  )
  for (const [i, [name, own]] of [...wanted].entries()) {
    const one = got.containers[i]
    const { maxMillis, maxBytes, throttledRatio, oomKills, observedShare, ...counts } = totalsOf(own)
    assert.deepEqual({ pods: one.pods, minutes: one.minutes }, counts, name)
    assertNear(one.observedShare, observedShare, false, 'observedShare')
    assert.deepEqual([one.cpu.maxMillis, one.memory.maxBytes, one.memory.oomKills], [maxMillis, maxBytes, oomKills])
    if (throttledRatio === null) assert.equal(one.cpu.throttledRatio, null)
    else assertNear(one.cpu.throttledRatio, throttledRatio, false, 'throttledRatio')
    for (const [key, share] of [
      ['p50', 0.5],
      ['p95', 0.95],
      ['p99', 0.99],
    ] as const) {
      const [cpu, memory] = [one.cpu[`${key}Millis`], one.memory[`${key}Bytes`]]
      if (one.minutes < 60) {
        assert.deepEqual([cpu, memory, one.fit, one.reason], [null, null, null, 'too_few_minutes'])
        continue
      }
      assertNear(
        cpu,
        percentile(own, share, (row) => row.cpuAvg),
        isEstimate,
        `${name} cpu ${key}`,
      )
      assertNear(
        memory,
        percentile(own, share, (row) => row.memMax),
        isEstimate,
        `${name} memory ${key}`,
      )
    }
    const groups = bySettings(own)
    assert.equal(one.settings.length, groups.size)
    for (const setting of one.settings) {
      const { cpuRequestMillis, cpuLimitMillis, memRequestBytes, memLimitBytes } = setting
      const key = JSON.stringify({ cpuRequestMillis, cpuLimitMillis, memRequestBytes, memLimitBytes })
      const totals = totalsOf(groups.get(key)!)
      assert.deepEqual(
        [setting.minutes, setting.pods, setting.cpuMaxMillis, setting.memMaxBytes, setting.oomKills],
        [totals.minutes, totals.pods, totals.maxMillis, totals.maxBytes, totals.oomKills],
      )
    }
    const newest = Math.max(...own.map(({ at }) => at))
    const last = own.filter(({ at }) => at === newest)
    assert.ok(
      [...bySettings(last).keys()].includes(JSON.stringify(one.current)),
      'the settings of a container of the newest minute',
    )
  }
}

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: the answer is that of a naive computation over the posted minutes, whatever is folded in between', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom(1, 2, 7), async (story, days) => {
      await reset()
      const namespace = newNamespace()
      const names = ['web-1', 'web-2', 'web-3'].map((name) => `${namespace}-${name}`)
      for (const [i, name] of names.entries()) await pod(namespace, name, { is_dead: i === 2 })
      const stored = new Map<string, Observed>()
      const posts: Observed[][] = []
      for (const step of story) {
        if (step.kind === 'fold') await fold()
        else {
          const rows =
            step.kind === 'post'
              ? step.rows.map((row) => ({ ...row, pod: `${namespace}-${row.pod}` }))
              : posts[step.which % Math.max(1, posts.length)]
          if (rows === undefined) continue
          await store(namespace, rows)
          posts.push(rows)
          for (const row of rows) {
            const key = `${row.pod}/${row.container} ${row.at} ${row.secs}`
            if (!stored.has(key)) stored.set(key, row)
          }
        }
      }
      for (const isFolded of [false, true]) {
        if (isFolded) await fold()
        assertSized(await sizing(namespace, `?days=${days}`), inWindow([...stored.values()], days, nowSecs()))
      }
    }),
    { numRuns: depth(7, 300) },
  )
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: posts and passes of the job at the same time count each minute once', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'web-1')
  const rows = Array.from({ length: depth(30, 400) }, (_, i) =>
    observed({
      pod: 'web-1',
      at: nowSecs() - (nowSecs() % 60) - i * 300,
      secs: 240,
      cpuAvg: i,
      cpuMax: Math.max(i, 200),
    }),
  )
  await drawLines(rows.at(-1)!.at - HOUR)
  let isOver = false
  const folding = (async () => {
    // As the job does, with a line that passes the minutes while they are posted.
    for (let line = rows.at(-1)!.at; !isOver; line += 900) {
      const until = new Date(line * 1_000).toISOString().slice(0, -1)
      await sql`select compute_close_count(${until}::text::timestamp)`
      await sql`select compute_count_step('-infinity', ${until}::text::timestamp, 600)`
      await sql`select compute_count_late_step('-infinity', 5)`
    }
  })()
  for (let i = 0; i < rows.length; i += 4) await Promise.all(rows.slice(i, i + 4).map((row) => store(namespace, [row])))
  isOver = true
  await folding
  for (const isFolded of [false, true]) {
    if (isFolded) await fold()
    assertSized(await sizing(namespace), inWindow(rows, 7, nowSecs()))
  }
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: a request is under an estimated p95 only if it is under every value that the p95 may have', () => {
  const setting = {
    ...{ cpuRequestMillis: 100, cpuLimitMillis: null, memRequestBytes: 1_000, memLimitBytes: 2_000 },
    ...{
      firstSeen: '2026-01-01T00:00:00Z',
      lastSeen: '2026-01-02T00:00:00Z',
      secs: 86_400,
      pods: 1,
      cpuMaxMillis: 900,
    },
    ...{ memMaxBytes: 900, periods: 0, throttled: 0, oomKills: 0 },
  }
  const rules = (p95: number, maxError: number) =>
    judgeContainer(
      {
        container: 'app',
        pods: 1,
        spanSecs: 86_400,
        cpu: [50, p95, 890],
        memory: [900, 900, 1_000],
        settings: [setting],
      },
      maxError,
    )
  const of = (p95: number, maxError: number) => rules(p95, maxError).fit!.map(({ rule }) => rule)
  assert.deepEqual(of(104, ESTIMATE_ERROR), [])
  assert.deepEqual(of(105, ESTIMATE_ERROR), ['requestUnderP95'])
  assert.deepEqual(of(104, 0), ['requestUnderP95'])
  assert.deepEqual(of(50, ESTIMATE_ERROR), ['requestOverP95'])
  assert.equal(rules(104, 0).memory.p99Bytes, 900, 'a percentile is not above the maximum')
})

test('GET /compute/workloads/{namespace}/{kind}/{name} 200: a minute that comes between the close of its hour and its count is counted once', async () => {
  const namespace = newNamespace()
  await pod(namespace, 'web-1')
  await drawLines(day(-3))
  await sql`update compute_fold set folded_until = counted_until, closed_until = counted_until`
  const until = new Date((day(-1) + HOUR) * 1_000).toISOString().slice(0, -1)
  await store(namespace, [observed({ pod: 'web-1', at: day(-1) + 60 })])
  await sql`select compute_close_count(${until}::text::timestamp)`
  await store(namespace, [observed({ pod: 'web-1', at: day(-1) })])
  const count = () => sql`select compute_count_step('-infinity', ${until}::text::timestamp, 3600)`
  const countLate = () => sql`select compute_count_late_step('-infinity', 100)`
  for (const step of [() => sql`select 1`, countLate, count, countLate, countLate, count]) {
    await step()
    assert.equal((await sizing(namespace)).containers[0].minutes, 2)
  }
  assert.equal((await sql`select from compute_uncounted`).length, 0)
  assert.ok((await sizing(namespace)).maxRelativeError > 0)
})

describe('faults', async () => {
  const guarded = await startApp({
    ...TOKENS,
    DB_STATEMENT_TIMEOUT_MS: '300',
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '4',
  })
  const token = TOKENS.BROKER_TOKEN_READ
  const path = pathOf('shop')

  for (const [query, says] of [
    ['days=week', /^Query deserialize error: days: expected an integer$/],
    ['days=1.5', /^Query deserialize error: days: /],
    ['days=', /^Query deserialize error: days: /],
    ['hours=7', /^Query deserialize error: .*hours/],
  ] as const)
    test(`GET /compute/workloads/{namespace}/{kind}/{name} 400: ${query}`, async () => {
      const answer = await app.get(`${path}?${query}`)
      assert.deepEqual([answer.status, says.test(answer.text)], [400, true], answer.text)
    })

  test('GET /compute/workloads/{namespace}/{kind}/{name} 400: a part of the path that is blank, too long or has U+0000', async () => {
    for (const [namespace, kind, name, part] of [
      [' ', 'K', 'n', 'namespace'],
      ['n', 'é'.repeat(127), 'n', 'kind'],
      ['n', 'K', 'a\0', 'name'],
    ] as const) {
      const answer = await app.get(pathOf(namespace, name, kind))
      assert.equal(answer.status, 400, part)
      assert.match(answer.text, new RegExp(`^Path deserialize error: ${part}: `))
    }
  })

  test('GET /compute/workloads/{namespace}/{kind}/{name} 401: without a token', async () =>
    assertUnauthorized(await guarded.get(path)))

  test('GET /compute/workloads/{namespace}/{kind}/{name} 503: 4 MiB are charged', async () => {
    const release = await guarded.deps.budget.acquire(1)
    assertShed(await guarded.get(path, { token }), 4_096, 4_096)
    release()
    assert.equal((await guarded.get(path, { token })).status, 200)
  })

  test('GET /compute/workloads/{namespace}/{kind}/{name} 503: a statement that is cancelled', async () => {
    await whileLocked(guarded.sql, 'compute_usage', async () => assertDatabaseBusy(await guarded.get(path, { token })))
  })
})
