import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { computeFold } from '../../jobs/compute-fold.ts'
import { emptyHistory } from '../jobs/compute-minutes.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'
import { history, keep, minute } from './minutes.ts'
import { inSecs, type Row, RUNQ } from './posts.ts'

const app = await startApp()
const { sql } = app

beforeEach(async () => {
  await emptyHistory(sql)
})

const SECS_OF_DAY = 86_400
/** Packs what is older than two hours; minutes of the last two days stay minutes. */
const packed = () =>
  computeFold.run({
    ...{ config: { ...app.deps.config, computeHistoryMinuteHours: 48 }, db: app.db, log: app.deps.log },
    signal: new AbortController().signal,
  })

const KEYS = [
  ...[
    'id',
    'container_uid',
    'pod_uid',
    'namespace',
    'pod_name',
    'container',
    'node',
    'ts',
    'resolution_secs',
    'cpu_usage_millis_avg',
  ],
  ...[
    'cpu_usage_millis_max',
    'cpu_usage_millis_last',
    'cpu_quota_usec',
    'cpu_period_usec',
    'cpu_request_millis',
    'cpu_limit_millis',
  ],
  ...[
    'cpu_nr_periods',
    'cpu_nr_throttled',
    'cpu_throttled_usec',
    'cpu_psi_some10_avg',
    'cpu_psi_some10_max',
    'cpu_psi_full10_avg',
  ],
  ...[
    'cpu_psi_full10_max',
    'mem_current_avg',
    'mem_current_max',
    'mem_current_last',
    'mem_working_set_avg',
    'mem_working_set_max',
  ],
  ...[
    'mem_working_set_last',
    'mem_limit',
    'mem_request',
    'mem_psi_some10_avg',
    'mem_psi_some10_max',
    'mem_psi_full10_avg',
  ],
  ...[
    'mem_psi_full10_max',
    'mem_events_high',
    'mem_events_max',
    'mem_oom_kill',
    'mem_refault',
    'mem_pgmajfault',
    'runq_count',
  ],
  ...['runq_p50_us', 'runq_p95_us', 'runq_p99_us', 'runq_max_us', 'runq_overflow', 'runq_hist'],
]
const ages = (rows: readonly Row[], from: string) => rows.map(({ ts }) => (Date.parse(from) - Date.parse(ts)) / 1_000)

/**
 * Containers of a pod by number, each with one minute every so many seconds back from now. The number of a
 * minute is returned as `mem_current_avg`.
 */
const fill = (pod: string, containers: number, rows: number, everySecs = 60) => sql`
  with c as (
    insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
    select ${pod} || '/' || n, ${pod}, 'shop', 'p', 'c' || n, 'node-a' from generate_series(1, ${containers}::int) n returning id)
  insert into compute_minute
  select nextval('compute_history_id'), c.id, now() at time zone 'utc' - make_interval(secs => n * ${everySecs}::int), 60, 0.5, 1, 1, null, 100000, null, null,
         0, 0, 0, 0.5, 1, 0, 0, n, 1, 1, 1, 1, 1, null, null, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, null, null, null, null, null, null, false
  from c, generate_series(0, ${rows - 1}::int) n`

test('GET /compute/history/{pod_uid} 200: an unknown pod has no rows', async () => {
  await keep(app, [minute()])
  for (const pod_uid of ['nobody', '%20', 'a/b', 'é']) assert.deepEqual(await history(app, { pod_uid }), [])
})

test('GET /compute/history/{pod_uid} 200: all containers of the pod and no others, by time and id, keys in wire order', async () => {
  const of = (pod: string, container: string) => minute({ pod_name: pod, container, runq: RUNQ })
  const now = inSecs(0)
  for (const ago of [2, 4, 1, 3])
    await keep(app, [of('p', 'app'), of('p', 'side'), of('p2', 'app')], { ts: inSecs(-60 * ago) })
  await keep(app, [of('p', 'app')], { ts: inSecs(-150), resolution_secs: 300 })
  const rows = await history(app, { pod_uid: 'uid-p' })
  assert.deepEqual(
    ages(rows, now).map((age) => Math.round(age / 30) * 30),
    [240, 240, 180, 180, 150, 120, 120, 60, 60],
  )
  for (const [i, row] of rows.entries()) {
    assert.deepEqual([Object.keys(row), row.pod_uid], [KEYS, 'uid-p'])
    const next = rows[i + 1]
    if (next?.ts === row.ts) assert.ok(row.id < next!.id)
  }
})

test('GET /compute/history/{pod_uid} 200: rows of other containers are not read, whatever the planner estimates', async () => {
  await fill('p', 1, 10)
  await fill('others', 2_000, 20)
  const reads = async () => {
    const [row] = await app.db.read(
      (of) => of`explain (analyze, buffers, format json, timing off, summary off)
        select k.* from compute_container c cross join lateral compute_history_keys(c.id, '-infinity', '-infinity') k where c.pod_uid = 'p'`,
    )
    const [{ Plan: plan }] = row!['QUERY PLAN'] as [{ Plan: Record<string, number> }]
    assert.equal(plan['Actual Rows'], 10)
    return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
  }
  // The first plan of a connection reads the catalog.
  for (const step of [() => sql`select 1`, () => sql`vacuum analyze compute_minute`]) {
    await step()
    for (let i = 0; i < app.deps.config.dbPoolMaxSize; i++) await reads()
    const pages = await reads()
    assert.ok(pages <= 300, `${pages} pages`)
  }
})

test('GET /compute/history/{pod_uid} 200: the default is 60 minutes, and values are clamped to 1..10080', async () => {
  const c = minute()
  const sent = [0.5, 2, 58, 62, 10_070, 10_090]
  for (const ago of sent) await keep(app, [c], { ts: inSecs(-60 * ago), resolution_secs: ago > 60 ? 300 : 60 })
  const shown = async (query: string) => (await app.get(`/compute/history/${c.pod_uid}${query}`)).json.rows.length
  for (const [query, rows] of [
    ...([
      ['', 3],
      ['?minutes=60', 3],
      ['?minutes=63', 4],
      ['?minutes=1', 1],
      ['?minutes=0', 1],
      ['?minutes=-9', 1],
    ] as const),
    ...([
      ['?minutes=10080', 5],
      ['?minutes=99999999999999999999', 5],
      ['?minutes=%2B63', 4],
      ['?minutes=2&minutes=60', 1],
    ] as const),
  ])
    assert.equal(await shown(query), rows, query)
})

test('GET /compute/history/{pod_uid} 200: minutes before the fold line are in their folded row, late ones stay minutes', async () => {
  const c = minute()
  const ts = [-7_000, -6_000, -5_000].map(inSecs)
  for (const at of ts) await keep(app, [c], { ts: at })
  await keep(app, [c], { ts: inSecs(-8_000), resolution_secs: 300 })
  const shown = async () => (await history(app, c, 1_000)).map((row) => [row.ts, row.resolution_secs])
  const folded = [(await shown())[0]![0], 300]
  await sql`update compute_fold set closed_until = ${ts[2]!}::timestamptz at time zone 'utc', folded_until = ${ts[2]!}::timestamptz at time zone 'utc'`
  assert.deepEqual(await shown(), [folded, [ts[2], 60]])
  await sql`update compute_minute set is_late = true where ts = ${ts[0]!}::timestamptz at time zone 'utc'`
  assert.deepEqual(await shown(), [folded, [ts[0], 60], [ts[2], 60]])
})

test('GET /compute/history/{pod_uid} 200: the newest rows, as many as minutes for each container', async () => {
  await fill('dense', 2, 30, 10)
  const rows = await history(app, { pod_uid: 'dense' }, 3)
  assert.deepEqual(
    rows.map((row) => row.mem_current_avg),
    [2, 2, 1, 1, 0, 0],
  )
})

test('GET /compute/history/{pod_uid} 200: at most 20000 rows, the newest, of at most 1000 containers', async () => {
  await fill('large', 1_001, 21, 10)
  const rows = await history(app, { pod_uid: 'large' }, 100)
  assert.equal(rows.length, 20_000)
  assert.deepEqual([rows[0]!.mem_current_avg, rows.at(-1)!.mem_current_avg], [19, 0])
  assert.equal(new Set(rows.map((row) => row.container_uid)).size, 1_000)

  await sql`update compute_minute set ts = ts - interval '5 hours'`
  const read = async () => (await app.get('/compute/history/large?minutes=500')).text
  const before = await read()
  await packed()
  assert.equal((await sql`select from compute_minute`).length, 0)
  assert.ok(before === (await read()))
})

const HIST = Array.from({ length: 24 }, (_, bucket) => bucket * 1_000)

test('GET /compute/history/{pod_uid} 200: packed minutes give the same bytes, among others, for each window', async () => {
  const started = Date.now()
  const odd = { pod_name: 'p', pod_uid: 'uid;1 \u001f"', namespace: 'sh"op' }
  const post = (name: string, secs: number, fields: object = {}, posted: object = {}) =>
    keep(app, [minute({ ...odd, container: name, container_uid: `${name} ;,\u001e`, ...fields })], {
      ts: new Date(started - secs * 1_000).toISOString(),
      ...posted,
    })
  for (let n = 0; n < 40; n++) {
    // Some are too new to be packed. Values are tiny, huge, fractions, and null.
    const secs = 30 + n * 431 + (n % 3 === 0 ? 0.25 : 0)
    const usage = [1e-7, 1e15, 1 / 3, 0, 123.456][n % 5]!
    await post('a', secs, { cpu: { usage_millis: { avg: usage, max: usage, last: 5e-5 }, quota_usec: null } })
    await post('b', secs, { runq: n % 2 === 0 ? { ...RUNQ, hist: HIST } : null, memory: { limit: null } })
    if (n % 4 === 0) await post('a', secs, {}, { resolution_secs: 30 })
    if (n === 39) await post('b', secs, {}, { resolution_secs: 300 })
  }
  await post('c', SECS_OF_DAY)
  const path = (minutes: number) => `/compute/history/${encodeURIComponent(odd.pod_uid)}?minutes=${minutes}`
  // The beginning of a window moves meanwhile: no minute is near these.
  const windows = [4, 11, 25, 90, 133, 140, 176, 283, 10_080]
  const read = () => Promise.all(windows.map(async (minutes) => (await app.get(path(minutes))).text))
  const before = await read()
  assert.equal((await packed()).outcome, 'done')
  const [row] = await sql`select sum(cardinality(seconds))::int as packed from compute_minute_pack`
  assert.ok(row!.packed > 40)
  for (const [i, text] of (await read()).entries()) assert.equal(text, before[i], `${windows[i]} minutes`)
  assert.equal(new Set(before).size, windows.length)

  // Late ones are among the packed ones, and one that is sent again is not there twice.
  await post('a', 30 + 39 * 431 + 0.25, {})
  await post('b', 10_000)
  const late = JSON.parse((await app.get(path(10_080))).text).rows
  assert.equal(late.length, JSON.parse(before.at(-1)!).rows.length + 1)
  const times = late.map(({ ts }: Row) => ts)
  assert.deepEqual(times, times.toSorted())
})

test('GET /compute/history/{pod_uid} 200: of packed rows the newest, as many as minutes for each container', async () => {
  const c = minute()
  for (let n = 0; n < 60; n++) await keep(app, [c], { ts: inSecs(-3 * 3_600 - n * 20), resolution_secs: 20 })
  await keep(app, [c], { ts: inSecs(-10) })
  await packed()
  for (const minutes of [185, 190]) {
    const rows = await history(app, c, minutes)
    assert.equal(rows.length, (minutes - 180) * 3 + 1)
  }
  await sql`delete from compute_container`
  assert.deepEqual(await history(app, c, 190), [])
})

test('GET /compute/history/{pod_uid} 200: names that need escaping are returned unchanged', async () => {
  const odd = { pod_uid: '\u001f\u0001', pod_name: '"'.repeat(200), container: '\\'.repeat(253), namespace: 'é\u0007' }
  const c = minute({ ...odd, runq: RUNQ })
  const ts = inSecs(-60)
  await keep(app, [c], { ts })
  await keep(app, [c], { ts: inSecs(0) })
  const rows = await history(app, odd)
  assert.equal(rows.length, 2)
  for (const row of rows) for (const [key, value] of Object.entries(odd)) assert.equal(row[key], value)
  assert.deepEqual([Object.keys(rows[0]!), rows[0]!.ts, rows[0]!.runq_hist], [KEYS, ts, RUNQ.hist])
})

test('GET /compute/history/{pod_uid} 400: minutes that are not an integer', async () => {
  for (const minutes of ['many', '', '1.5', '1e3', '0x10']) {
    const { status, text } = await app.get(`/compute/history/u?minutes=${minutes}`)
    assert.equal(status, 400, minutes)
    assert.match(text, /^Query deserialize error: minutes: expected an integer/)
  }
})

describe('access and faults', async () => {
  const guarded = await startApp({
    ...TOKENS,
    DB_STATEMENT_TIMEOUT_MS: '300',
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '64',
  })
  const token = TOKENS.BROKER_TOKEN_READ

  test('GET /compute/history/{pod_uid} 401: without a token', async () =>
    assertUnauthorized(await guarded.get('/compute/history/u')))

  test('GET /compute/history/{pod_uid} 503: 2 KiB are charged for each possible row', async () => {
    await guarded.sql`insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
      select n, case n when 1 then 'one' else 'three' end, 'n', 'p', 'c', 'n' from generate_series(1, 4) n`
    const release = await guarded.deps.budget.acquire(64 * 1024)
    for (const [path, kib] of [
      ['nobody', 1],
      ['one', 120],
      ['three?minutes=100', 600],
      ['three?minutes=10080', 40_000],
    ] as const)
      assertShed(await guarded.get(`/compute/history/${path}`, { token }), kib, 64 * 1024)
    release()
    assert.equal((await guarded.get('/compute/history/one', { token })).status, 200)
  })

  test('GET /compute/history/{pod_uid} 503: a statement that is cancelled', async () => {
    await whileLocked(guarded.sql, 'compute_folded', async () =>
      assertDatabaseBusy(await guarded.get('/compute/history/one', { token })),
    )
  })
})
