import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { history, keep, minute, minutes, pairs, SHOWN } from '../compute/minutes.ts'
import { culprit, type Fields, inSecs, type Row, RUNQ, unique } from '../compute/posts.ts'
import { byLabel } from '../seccomp/drains.ts'
import { startApp, TOKENS } from '../support/app.ts'
import {
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  refusedBodies,
  startReplica,
  whileLocked,
} from '../support/routes.ts'
import { until } from '../support/until.ts'

const PATH = '/pod/compute/history/batch'
const MAX_COUNT = 1_000_000_000_000_000
const MAX_BYTES = 16 * 1024 * 1024
const app = await startApp()
const { sql, deps } = app

beforeEach(async () => {
  await sql`truncate compute_minute, compute_folded, compute_contention, compute_container`
  await sql`update compute_fold set folded_until = '-infinity', closed_until = '-infinity'`
  app.logged.length = 0
})

const rejected = async () => (await byLabel(deps.metrics.rejectedEntries))[PATH] ?? 0
const warnings = ({ logged }: typeof app) => logged.filter(({ level }) => level === 40)
const one = async (container: Fields, within = 60): Promise<Row> => {
  const rows = await history(app, container, within)
  assert.equal(rows.length, 1)
  return rows[0]!
}
const shown = async (fields: Fields, envelope: Fields = {}): Promise<Row> => {
  const c = minute(fields)
  assert.equal(await keep(app, [c], envelope), 1)
  return one(c)
}
const waits = (rows: readonly Row[]) => rows.map(({ wait_ns }) => wait_ns)

test('POST /pod/compute/history/batch 200: a stored row has every field that was sent', async () => {
  const ts = inSecs(-5)
  const [c, bare] = [minute({ runq: RUNQ, stranger: {} }), minute()]
  assert.equal(await keep(app, [c, bare], { ts, stranger: [] }), 2)
  for (const [sent, runq] of [
    [
      c,
      {
        runq_count: 60,
        runq_p50_us: 200,
        runq_p95_us: 900,
        runq_p99_us: 1_500,
        runq_max_us: 4_000,
        runq_overflow: 2,
        runq_hist: RUNQ.hist,
      },
    ],
    [
      bare,
      {
        runq_count: null,
        runq_p50_us: null,
        runq_p95_us: null,
        runq_p99_us: null,
        runq_max_us: null,
        runq_overflow: null,
        runq_hist: null,
      },
    ],
  ] as const) {
    const { id, ...row } = await one(sent)
    assert.ok(Number.isInteger(id))
    const { container_uid, pod_uid, pod_name, namespace, container } = sent
    assert.deepEqual(row, {
      container_uid,
      pod_uid,
      namespace,
      pod_name,
      container,
      node: 'node-a',
      ts,
      ...SHOWN,
      ...runq,
    })
  }
})

test('POST /pod/compute/history/batch 200: repeated rows are accepted and change nothing; a new row beside them is stored', async () => {
  const node = unique('node')
  const body = minutes([minute({ blame: [culprit(5), culprit(7)] }), minute({ blame: [culprit(3)] })], { node })
  const read = async () => [
    ...(await sql`select * from compute_minute`),
    ...(await sql`select * from compute_container`),
    await pairs(app, { node }),
  ]
  assert.equal((await app.post(PATH, body)).text, '{"accepted":2}')
  const first = await read()
  assert.equal((await app.post(PATH, body)).text, '{"accepted":2}')
  assert.deepEqual(await read(), first)
  const [a, b] = body.containers as Fields[]
  assert.equal(
    await keep(app, [{ ...a, blame: [culprit(9)] }, minute({ blame: [culprit(4)] }), b], { node, ts: body.ts }),
    3,
  )
  assert.deepEqual(waits(await pairs(app, { node })).sort(), [3, 4, 5, 7])
})

test('POST /pod/compute/history/batch 200: when a container is in a post more than once, only its last valid row and the culprits of that row are stored', async () => {
  const node = unique('node')
  const c = minute()
  const as = (current: number) => ({ ...c, memory: { current: { avg: current } }, blame: [culprit(current)] })
  assert.equal(await keep(app, [as(1), minute(), as(2), { ...as(9), cpu: 0 }, as(3)], { node }), 2)
  assert.equal((await one(c)).mem_current_avg, 3)
  assert.deepEqual(waits(await pairs(app, { node })), [3])
})

test('POST /pod/compute/history/batch 200: rows of one container that differ in time or resolution are separate rows', async () => {
  const c = minute()
  const ts = inSecs(-120)
  for (const envelope of [
    {},
    { resolution_secs: 61 },
    { resolution_secs: 300 },
    { resolution_secs: 301 },
    { ts: inSecs(-121) },
  ])
    for (let again = 0; again < 2; again++) assert.equal(await keep(app, [c], { ts, ...envelope }), 1)
  assert.equal((await history(app, c)).length, 5)
})

test('POST /pod/compute/history/batch 200: the default resolution is 60 seconds; rows below 300 seconds are stored as minutes, longer ones as folded rows', async () => {
  const sent: [unknown, number][] = [
    ...([
      [undefined, 60],
      [1, 1],
      [299, 299],
      [300, 300],
      [86_400, 86_400],
    ] as [unknown, number][]),
  ]
  for (const [resolution_secs, secs] of sent)
    assert.equal((await shown({}, { resolution_secs, interval_ms: undefined })).resolution_secs, secs)
  const [{ minutes: fine, folded }] = (await sql`
    select array_to_json(array(select resolution_secs from compute_minute order by 1)) as minutes,
           array_to_json(array(select resolution_secs from compute_folded order by 1)) as folded`) as [Row]
  assert.deepEqual(
    [fine, folded],
    [
      [1, 60, 299],
      [300, 86_400],
    ],
  )
})

describe('containers', () => {
  test('POST /pod/compute/history/batch 200: the names sent with the last new row are shown on all rows of the container; a repeat does not change them', async () => {
    const c = minute()
    const other = { ...c, pod_uid: 'uid-other', namespace: 'else', pod_name: 'renamed', container: 'side' }
    const ts = [inSecs(-180), inSecs(-120)]
    await keep(app, [c], { ts: ts[0], node: 'node-1' })
    await keep(app, [other], { ts: ts[1], node: 'node-2' })
    const documentedAs = async () =>
      (await history(app, other)).map(({ pod_uid, namespace, pod_name, container, node }) => [
        pod_uid,
        namespace,
        pod_name,
        container,
        node,
      ])
    const now = ['uid-other', 'else', 'renamed', 'side', 'node-2']
    assert.deepEqual(await documentedAs(), [now, now])
    assert.deepEqual(await history(app, c), [])
    // A repeat of a stored row does not change the names.
    await keep(app, [c], { ts: ts[0], node: 'node-1' })
    assert.deepEqual(await documentedAs(), [now, now])
  })

  test('POST /pod/compute/history/batch 200: an unchanged container is not written again', async () => {
    const containers = [minute(), minute()]
    await keep(app, containers, { ts: inSecs(-60) })
    const written = () => sql`select xmin::text, ctid::text, * from compute_container order by id`
    const before = [...(await written())]
    await keep(app, containers.reverse(), { ts: inSecs(0) })
    assert.deepEqual([...(await written())], before)
  })
})

describe('times', () => {
  const stored = () => sql<{ ts: string; sent: string | null; secs: number }[]>`
    select ts::text, sent_at::text as sent, extract(epoch from now() at time zone 'utc' - ts)::float8 as secs
    from (select ts, sent_at from compute_minute union all select ts, sent_at from compute_folded) m order by ts`

  test('POST /pod/compute/history/batch 200: a time in another zone is stored in UTC, and a time of at most 300 seconds ahead is kept', async () => {
    await keep(app, [minute()], { ts: '2026-01-01T02:00:00.123456789+02:00' })
    // By the clock of the database, which may run on another machine.
    const [{ ahead }] = await sql<[{ ahead: string }]>`
      select (clock_timestamp() at time zone 'utc' + interval '300 s')::text as ahead`
    await keep(app, [minute()], { ts: `${ahead.replace(' ', 'T')}Z` })
    assert.deepEqual(
      (await stored()).map(({ ts, sent }) => [ts, sent]),
      [
        ['2026-01-01 00:00:00.123456', null],
        [ahead, null],
      ],
    )
  })

  test('POST /pod/compute/history/batch 200: a time more than 300 seconds ahead becomes now, and a repeat is recognised by the time that was sent', async () => {
    for (const resolution_secs of [60, 300]) {
      const node = unique('node')
      const [c, other] = [minute({ blame: [culprit(5)] }), minute()]
      const [ts, next] = [inSecs(400), inSecs(460)]
      for (const at of [ts, next, ts, next]) assert.equal(await keep(app, [c], { ts: at, resolution_secs, node }), 1)
      assert.equal(await keep(app, [c, other], { ts, resolution_secs, node }), 2)
      assert.equal((await history(app, c, 5)).length, 2)
      assert.equal((await history(app, other, 5)).length, 1)
      assert.deepEqual(waits(await pairs(app, { node, minutes: 1 })), [5, 5])
    }
    for (const { secs } of await stored()) assert.ok(secs >= 0 && secs < 60)
  })

  test('POST /pod/compute/history/batch 200: a row that was sent ahead of time is still recognised when its time is no longer ahead', async () => {
    const [c, other] = [minute(), minute()]
    const ts = inSecs(600)
    await keep(app, [c], { ts })
    const at = inSecs(100)
    await sql`update compute_minute set sent_at = ${at}::timestamptz at time zone 'utc'`
    assert.equal(await keep(app, [c, other], { ts: at }), 2)
    assert.deepEqual([(await history(app, c)).length, (await history(app, other)).length], [1, 1])
  })

  test('POST /pod/compute/history/batch 200: the earliest and the latest time are accepted, and their repeats are recognised', async () => {
    const c = minute()
    for (const ts of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z'])
      for (let i = 0; i < 2; i++) assert.equal(await keep(app, [c], { ts }), 1)
    assert.equal((await stored()).length, 2)
  })

  test('POST /pod/compute/history/batch 200: minutes before `closed_until` are marked late, later ones are not; late minutes and longer rows are read; a folded minute that is sent again adds no row', async () => {
    const c = minute()
    const [{ line }] = (await sql`
      update compute_fold set folded_until = date_trunc('minute', now() at time zone 'utc') - interval '2 hours',
                              closed_until = date_trunc('minute', now() at time zone 'utc') - interval '1 hour'
      returning extract(epoch from closed_until)::float8 as line`) as unknown as [{ line: number }]
    const at = (secs: number) => new Date((line + secs) * 1_000).toISOString()
    for (const secs of [-1, 0, -4_000]) await keep(app, [c], { ts: at(secs) })
    await keep(app, [c], { ts: at(-300), resolution_secs: 300 })
    const rows =
      await sql`select is_late, extract(epoch from ts)::float8 - ${line}::float8 as secs from compute_minute order by ts`
    assert.deepEqual(
      [...rows].map(({ is_late, secs }) => [secs, is_late]),
      [
        [-4_000, true],
        [-1, true],
        [0, false],
      ],
    )
    const read = async () =>
      (await history(app, c, 300)).map(({ ts, resolution_secs }) => [Date.parse(ts) / 1_000 - line, resolution_secs])
    const later = [
      [-300, 300],
      [-1, 60],
      [0, 60],
    ]
    assert.deepEqual(await read(), [[-4_000, 60], ...later])
    // A minute before `folded_until` that is not late counts as folded: it is read as part of the longer row.
    await sql`update compute_minute set is_late = false`
    assert.deepEqual(await read(), later)
    await keep(app, [c], { ts: at(-4_000) })
    assert.deepEqual(await read(), later)
    assert.equal((await sql`select from compute_minute`).length, 3)
  })
})

describe('values', () => {
  const NO_NUMBERS = [undefined, null, '5', true, [], {}]

  test('POST /pod/compute/history/batch 200: byte gauges are rounded to whole numbers, and a negative one is 0', async () => {
    const row = await shown({
      memory: {
        current: { avg: 1_000.6, max: 2_000.4, last: 1_500.5 },
        working_set: { avg: 10.4, max: 20.6, last: -3 },
      },
    })
    assert.deepEqual([row.mem_current_avg, row.mem_current_max, row.mem_current_last], [1_001, 2_000, 1_501])
    assert.deepEqual([row.mem_working_set_avg, row.mem_working_set_max, row.mem_working_set_last], [10, 21, 0])
  })

  test('POST /pod/compute/history/batch 200: a gauge that is not an object, or a part of it that is not a number, is 0', async () => {
    for (const gauge of [...NO_NUMBERS, 7]) {
      const row = await shown({
        cpu: { usage_millis: gauge, psi_some10: gauge },
        memory: { current: gauge, psi_full10: { max: gauge } },
      })
      for (const key of [
        'cpu_usage_millis_avg',
        'cpu_usage_millis_last',
        'cpu_psi_some10_max',
        'mem_current_max',
        'mem_psi_full10_avg',
      ])
        assert.equal(row[key], 0, `${key} of ${JSON.stringify(gauge)}`)
      assert.equal(row.mem_psi_full10_max, gauge === 7 ? 7 : 0)
    }
  })

  test('POST /pod/compute/history/batch 200: fractions and counts are clamped to 0 to 10^15, and a limit outside that range is null', async () => {
    const row = await shown({
      cpu: {
        usage_millis: { avg: 5e-324, max: 1e300, last: -1 },
        psi_some10: { avg: 1e-299, max: 1e-301 },
        nr_periods: 1e300,
        quota_usec: 1e300,
      },
      memory: { oom_kill: -1, refault: 1.5, limit: -1 },
    })
    assert.deepEqual([row.cpu_usage_millis_avg, row.cpu_usage_millis_max, row.cpu_usage_millis_last], [0, MAX_COUNT, 0])
    assert.deepEqual(
      [row.cpu_psi_some10_avg, row.cpu_psi_some10_max, row.cpu_nr_periods, row.cpu_quota_usec],
      [1e-299, 0, MAX_COUNT, null],
    )
    assert.deepEqual([row.mem_oom_kill, row.mem_refault, row.mem_limit], [0, 2, null])
  })

  test('POST /pod/compute/history/batch 200: a histogram has 24 buckets, and is null when it is empty or not an array', async () => {
    const hists: [unknown, number[] | null][] = [
      [Array.from({ length: 24 }, (_, i) => i), Array.from({ length: 24 }, (_, i) => i)],
      [
        [7, 1.5, -1, 'x', null, 1e300],
        [7, 2, 0, 0, 0, MAX_COUNT, ...Array(18).fill(0)],
      ],
      [Array(30).fill(2), Array(24).fill(2)],
      ...[[], null, undefined, 'x', {}].map((hist): [unknown, null] => [hist, null]),
    ]
    for (const [hist, expected] of hists) {
      const row = await shown({ runq: { ...RUNQ, hist } })
      assert.deepEqual([row.runq_hist, row.runq_count], [expected, 60])
    }
    assert.equal((await shown({ runq: 'x' })).runq_count, null)
  })
})

describe('blame', () => {
  test('POST /pod/compute/history/batch 200: a culprit with an empty kind or no wait is left out; a malformed one is left out and counted as rejected', async () => {
    const node = unique('node')
    const before = await rejected()
    const none = [culprit(0), culprit(-1), culprit('5'), culprit(0.4), culprit(9, { kind: '' })]
    const bad = [
      null,
      7,
      [],
      culprit(9, { kind: 7 }),
      culprit(9, { kind: 'k'.repeat(65) }),
      culprit(9, { ref: 'a\0b' }),
      culprit(9, { ref: undefined }),
    ]
    const last = culprit(3, { container_uid: undefined, cgroup_id: 'x', kind: ' ', ref: '"\\{},null', count: 1e300 })
    await keep(
      app,
      [minute({ blame: [...none, culprit(5, { container_uid: null }), ...bad, last] }), minute({ blame: 'x' })],
      { node },
    )
    const found = await pairs(app, { node })
    assert.deepEqual(
      found.map((row) => [
        row.wait_ns,
        row.culprit_kind,
        row.culprit_ref,
        row.culprit_container_uid,
        row.culprit_cgroup_id,
        row.count,
      ]),
      [
        [5, 'pod', 'other/busy-0/app', null, 9_000, 3],
        [3, ' ', '"\\{},null', null, null, MAX_COUNT],
      ],
    )
    assert.equal((await rejected()) - before, bad.length)
  })

  test('POST /pod/compute/history/batch 200: the 20 heaviest culprits of a container are stored, the others are counted as rejected', async () => {
    const node = unique('node')
    const before = await rejected()
    await keep(app, [minute({ blame: Array.from({ length: 25 }, (_, i) => culprit(1 + ((i * 7) % 25))) })], { node })
    assert.deepEqual(
      waits(await pairs(app, { node })),
      Array.from({ length: 20 }, (_, i) => 25 - i),
    )
    assert.equal((await rejected()) - before, 5)
  })

  test('POST /pod/compute/history/batch 200: 64-bit ids keep every digit; those above 2^63 - 1 are shown as negative numbers', async () => {
    const node = unique('node')
    const ids = ['18446744073709551615', '9007199254740993', '9223372036854775807']
    const body = JSON.stringify(
      minutes([minute({ blame: ids.map((_, i) => culprit(9 - i, { cgroup_id: `id-${i}` })) })], { node }),
    )
    assert.equal(
      (
        await app.post(
          PATH,
          body.replace(/"id-(\d)"/g, (_, i) => ids[i]!),
        )
      ).status,
      200,
    )
    const { text } = await app.get(`/compute/contention?node=${node}`)
    assert.deepEqual(text.match(/(?<="culprit_cgroup_id":)-?\d+/g), ['-1', '9007199254740993', '9223372036854775807'])
  })
})

describe('rows that are skipped', () => {
  const bad: unknown[] = [
    ...[null, 7, 'row', [], {}, true],
    ...['container_uid', 'pod_uid', 'namespace', 'pod_name', 'container', 'cpu', 'memory'].flatMap((key) =>
      [undefined, null, 5, []].map((value) => ({ ...minute(), [key]: value })),
    ),
    ...['container_uid', 'pod_uid', 'namespace', 'pod_name', 'container'].flatMap((key) =>
      ['', ' \t', 'a\0b', '\ud800', 'x'.repeat(513)].map((value) => minute({ [key]: value })),
    ),
  ]

  test('POST /pod/compute/history/batch 200: a malformed container is skipped, counted as rejected and logged, the others are stored', async () => {
    const before = await rejected()
    const between = bad.flatMap((row) => [minute({ pod_uid: 'good', container: unique('c') }), row])
    assert.equal(await keep(app, between), bad.length)
    assert.equal((await history(app, { pod_uid: 'good' })).length, bad.length)
    assert.equal((await sql`select from compute_minute`).length, bad.length)
    assert.equal((await rejected()) - before, bad.length)
    // Only the first line of an app comes at once.
    const other = await startApp()
    assert.equal(await keep(other, bad), 0)
    assert.deepEqual(
      warnings(other).map(({ msg, entry, cpu, memory }) => [msg, entry, cpu, memory]),
      [[`${PATH}: minutes of compute were skipped, counted by the field at fault`, 5, 4, 4]],
    )
  })

  test('POST /pod/compute/history/batch 200: names with quotes, backslashes and control characters are stored as sent', async () => {
    const odd = {
      pod_uid: '"\\\\",{}',
      namespace: 'null',
      pod_name: "';--\n\t\u001f",
      container: '\\',
      container_uid: 'NULL',
    }
    assert.equal(
      await keep(app, [minute({ ...odd, blame: [culprit(1, { ref: '\u001f\u0001' })] })], { node: '"\\\u001f' }),
      1,
    )
    const row = await one(odd)
    for (const [key, value] of Object.entries(odd)) assert.equal(row[key], value)
    const [pair] = await pairs(app, { namespace: 'null' })
    assert.deepEqual([pair!.node, pair!.culprit_ref, pair!.victim_pod_uid], ['"\\\u001f', '\u001f\u0001', odd.pod_uid])
  })
})

describe('limits', () => {
  const small = (i: number) => ({
    container_uid: `u${i}`,
    pod_uid: 'u',
    namespace: 'n',
    pod_name: 'p',
    container: 'c',
    cpu: {},
    memory: {},
  })

  test('POST /pod/compute/history/batch 200: 5000 containers are accepted, one more is refused with 413', async () => {
    const containers = Array.from({ length: 5_000 }, (_, i) => small(i))
    assert.equal(await keep(app, containers), 5_000)
    for (const over of [[...containers, small(5_000)], Array(5_001).fill(0)])
      assert.equal((await app.post(PATH, minutes(over))).status, 413)
    assert.equal((await sql`select from compute_minute`).length, 5_000)
    assert.equal(await keep(app, []), 0)
  })

  test('POST /pod/compute/history/batch 413: a body of more than 16 MiB, plain or unpacked from gzip', async () => {
    const text = JSON.stringify(minutes([minute()]))
    const padded = (bytes: number) => text + ' '.repeat(bytes - text.length)
    const headers = { 'content-encoding': 'gzip' }
    assert.equal((await app.post(PATH, gzipSync(padded(MAX_BYTES)), { headers })).status, 200)
    assert.equal((await app.post(PATH, padded(MAX_BYTES + 1))).status, 413)
    assert.equal((await app.post(PATH, gzipSync(padded(MAX_BYTES + 1)), { headers })).status, 413)
  })

  test('POST /pod/compute/history/batch 400: a bad field of the envelope is named, and nothing is written', async () => {
    const envelopes: [string, unknown[]][] = [
      ['node', [undefined, null, '', ' \n', 7, 'é'.repeat(127)]],
      ['ts', [undefined, null, 7, 'now', '2026-01-01T00:00:00', '2026-02-30T00:00:00Z']],
      ['interval_ms', [null, 0, -5, '5000', 1.5]],
      ['resolution_secs', [null, 0, -60, '60', 1.5, 86_401, 1e300, true]],
      ['containers', [undefined, null, {}, 'x']],
    ]
    for (const [field, values] of envelopes)
      for (const value of values) {
        const { status, text } = await app.post(PATH, minutes([minute()], { [field]: value }))
        assert.equal(status, 400, `${field} ${value}`)
        assert.match(text, new RegExp(`^Json deserialize error: ${field}: .`))
      }
    assert.equal((await sql`select from compute_minute`).length, 0)
  })

  test('POST /pod/compute/history/batch 400: a malformed body or content type is refused', async () => {
    for (const { what, status, says, body, headers } of refusedBodies(minutes([]), 'node')) {
      if (status === 413) continue
      const answer = await app.post(PATH, body, headers ? { headers } : {})
      assert.equal(answer.status, status, what)
      assert.match(answer.text, says, what)
    }
  })
})

describe('concurrent posts', () => {
  test('POST /pod/compute/history/batch 200: two replicas that get the same posts at once, in opposite orders, store each row and pair once', async () => {
    const replica = startReplica(app)
    const { retried } = app.db.ingest.stats
    const node = unique('node')
    const containers = Array.from({ length: 100 }, () => minute({ pod_uid: 'raced', blame: [culprit(1), culprit(2)] }))
    const posts = [{}, { ts: inSecs(-60) }, { resolution_secs: 300 }, { ts: inSecs(900) }, { ts: inSecs(302) }].map(
      (fields) => ({
        ...minutes(containers, { node, ts: inSecs(-30), ...fields }),
      }),
    )
    const statuses = await Promise.all(
      [0, 1, 2, 3].flatMap((n) =>
        posts.map(async (post) => {
          const sent = { ...post, containers: n < 2 ? containers : containers.toReversed() }
          return n % 2 ? (await app.post(PATH, sent)).status : replica.post(PATH, sent)
        }),
      ),
    )
    await replica.end()
    assert.deepEqual(new Set(statuses), new Set([200]))
    assert.equal(app.db.ingest.stats.retried, retried)
    const [count] = await sql`
      select (select count(*)::int from compute_minute) as minutes, (select count(*)::int from compute_folded) as folded,
             (select count(*)::int from compute_contention) as pairs, (select count(*)::int from compute_container) as containers`
    assert.deepEqual({ ...count }, { minutes: 400, folded: 100, pairs: 1_000, containers: 100 })
  })

  test('POST /pod/compute/history/batch 200: no post is lost or refused while day partitions are made and dropped', async () => {
    const node = unique('node')
    let isOver = false
    let n = 0
    const agents = Array.from({ length: 4 }, async (_, agent) => {
      while (!isOver) {
        n++
        const c = minute({ pod_uid: 'steady', blame: [culprit(1)] })
        assert.equal(await keep(app, [c], { node, ts: inSecs(-86_400 * (agent % 3)) }), 1)
      }
    })
    for (let round = 0; round < 6; round++) {
      for (const table of ['compute_minute', 'compute_folded', 'compute_contention']) {
        await until('the day is made', async () => {
          const [{ is_held_up, waiting }] = (await sql`
            select * from compute_make_days(${table}, (now() at time zone 'utc')::date - 7, 100000)`) as [Row]
          return !is_held_up && waiting === 0
        })
      }
      const before = n
      await until('more is posted', () => n > before + 8)
      for (const table of ['compute_minute', 'compute_folded', 'compute_contention']) {
        // Moves the rows back to the default partition, so that the next round makes the days again.
        const days = await sql<{ partition: string }[]>`select partition::text from compute_days(${table})`
        for (const { partition } of round < 5 ? days : []) {
          await sql.begin(async (tx) => {
            await tx`select compute_lock_posts()`
            await tx.unsafe(`lock table ${table}, ${table}_other in access exclusive mode; alter table ${table} detach partition ${partition};
              insert into ${table} select * from ${partition}; drop table ${partition}`)
          })
        }
      }
    }
    isOver = true
    await Promise.all(agents)
    const [count] =
      await sql`select (select count(*)::int from compute_minute) as minutes, (select count(*)::int from compute_contention) as pairs`
    assert.deepEqual({ ...count }, { minutes: n, pairs: n })
  })
})

test('POST /pod/compute/history/batch 200: with a retention of 0 days nothing is stored, and bad bodies are still refused', async () => {
  const off = await startApp({ COMPUTE_HISTORY_RETENTION_DAYS: '0' })
  assert.equal(await keep(off, [minute({ blame: [culprit(5)] }), null]), 0)
  assert.equal((await off.post(PATH, minutes([], { node: '' }))).status, 400)
  assert.equal((await off.post(PATH, minutes(Array(5_001).fill(0)))).status, 413)
  const [count] =
    await off.sql`select (select count(*)::int from compute_minute) + (select count(*)::int from compute_container) as rows`
  assert.equal(count!.rows, 0)
})

describe('access and faults', async () => {
  const guarded = await startApp({ ...TOKENS, DB_STATEMENT_TIMEOUT_MS: '300' })

  test('POST /pod/compute/history/batch 401: without a token', async () =>
    assertUnauthorized(await guarded.post(PATH, minutes([]))))

  test('POST /pod/compute/history/batch 403: with a token for reading', async () =>
    assertForbidden(await guarded.post(PATH, minutes([]), { token: TOKENS.BROKER_TOKEN_READ }), 'ingest'))

  test('POST /pod/compute/history/batch 503: a statement that is cancelled writes nothing', async () => {
    await whileLocked(guarded.sql, 'compute_contention', async () =>
      assertDatabaseBusy(
        await guarded.post(PATH, minutes([minute({ blame: [culprit(5)] })]), { token: TOKENS.BROKER_TOKEN_INGEST }),
      ),
    )
    assert.deepEqual([...(await guarded.sql`select from compute_minute`)], [])
  })
})
