import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import openapi from '../../openapi.json' with { type: 'json' }
import {
  culprit,
  type Fields,
  inSecs,
  latest,
  nodes,
  type Row,
  RUNQ,
  sample,
  take,
  tick,
  unique,
} from '../compute/posts.ts'
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

const PATH = '/pod/compute/batch'
const MAX_COUNT = 1_000_000_000_000_000
const MAX_BYTES = 16 * 1024 * 1024
const app = await startApp()
const { sql, deps } = app

beforeEach(async () => {
  await sql`truncate compute_latest, compute_node`
  app.logged.length = 0
})

const rejected = async () => (await byLabel(deps.metrics.rejectedEntries))[PATH] ?? 0
const warnings = ({ logged }: typeof app) => logged.filter(({ level }) => level === 40)
const one = async (): Promise<Row> => {
  const { containers } = await latest(app)
  assert.equal(containers.length, 1)
  return containers[0]!
}
/** Sends the containers in one post and returns their rows. */
const allShown = async (containers: readonly Fields[], envelope: Fields = {}): Promise<Row[]> => {
  const namespace = unique('ns')
  const pods = containers.map((_, i) => `pod-${String(i).padStart(4, '0')}`)
  assert.equal(
    await take(
      app,
      containers.map((fields, i) => sample({ pod_name: pods[i], namespace, ...fields })),
      envelope,
    ),
    containers.length,
  )
  const rows = (await latest(app, namespace)).containers
  assert.deepEqual(
    rows.map(({ pod_name }) => pod_name),
    pods,
  )
  return rows
}
const shown = async (fields: Fields, envelope: Fields = {}): Promise<Row> => (await allShown([fields], envelope))[0]!
const isNow = (time: string) => assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000, time)

test('POST /pod/compute/batch 200: the sample of the tests has every documented field', () => {
  const { properties } = openapi.components.schemas.ComputeSamples.properties.containers.items
  const sent = { ...sample(), runq: RUNQ } as Record<string, object>
  assert.deepEqual(Object.keys(sent).sort(), Object.keys(properties).sort())
  for (const [name, block] of Object.entries({ ...properties, runq: properties.runq.anyOf[0] }))
    if (block !== undefined && 'properties' in block)
      assert.deepEqual(Object.keys(sent[name]!).sort(), Object.keys(block.properties!).sort(), name)
})

test('POST /pod/compute/batch 200: a stored row has every field that was sent', async () => {
  const ts = inSecs(-5)
  const c = sample({
    runq: RUNQ,
    blame: [culprit(9_000), culprit(4_000, { kind: 'kernel', ref: 'kernel', container_uid: null })],
    stranger: {},
  })
  assert.equal(await take(app, [c], { ts, stranger: [] }), 1)
  const { updated_at, ...row } = await one()
  isNow(updated_at)
  assert.deepEqual(row, {
    ...{
      container_uid: c.container_uid,
      pod_uid: c.pod_uid,
      namespace: 'shop',
      pod_name: c.pod_name,
      container: 'app',
      node: 'node-a',
    },
    ...{
      cgroup_id: 4_711,
      ts,
      interval_ms: 5_000,
      cpu_usage_millis: 100,
      cpu_quota_usec: 200_000,
      cpu_period_usec: 50_000,
    },
    ...{
      cpu_request_millis: 250,
      cpu_limit_millis: 2_000,
      cpu_nr_periods: 50,
      cpu_nr_throttled: 5,
      cpu_throttled_usec: 40_000,
    },
    ...{
      cpu_psi_some10: 12.5,
      cpu_psi_full10: 2.25,
      mem_current: 300_000_000,
      mem_working_set: 200_000_000,
      mem_limit: 536_870_912,
    },
    ...{
      mem_request: 268_435_456,
      mem_psi_some10: 1.5,
      mem_psi_full10: 0.5,
      mem_events_high: 3,
      mem_events_max: 2,
      mem_oom_kill: 1,
    },
    ...{
      mem_refault: 70,
      mem_pgmajfault: 9,
      runq_count: 60,
      runq_p50_us: 200,
      runq_p95_us: 900,
      runq_p99_us: 1_500,
      runq_max_us: 4_000,
    },
    ...{ runq_overflow: 2, blame: c.blame, blame_omitted: 0, blame_omitted_wait_ns: 0 },
  })
})

test('POST /pod/compute/batch 200: CPU usage is the delta divided by the interval', async () => {
  for (const [usage_usec, interval_ms, millis] of [
    [5_000_000, 5_000, 1_000],
    [0, 5_000, 0],
    [1, 3_000, 1 / 3_000],
    [MAX_COUNT, 1, MAX_COUNT],
  ] as const)
    assert.equal((await shown({ cpu: { usage_usec } }, { interval_ms })).cpu_usage_millis, millis)
})

test('POST /pod/compute/batch 200: a sample replaces every column of the one before, even if it is older', async () => {
  const names = { pod_name: 'web-0' }
  await take(app, [sample({ ...names, runq: RUNQ, blame: [culprit(1)] })], { ts: inSecs(0) })
  const ts = inSecs(-30)
  const other = sample({
    ...{ ...names, pod_uid: 'other', namespace: 'shop', cgroup_id: 1, runq: null, blame: [] },
    cpu: Object.fromEntries(['usage_usec', 'quota_usec', 'request_millis', 'limit_millis'].map((key) => [key, null])),
    memory: { limit: null, request: null, current: 7 },
  })
  await take(app, [other], { ts, node: 'node-b', interval_ms: 1_000 })
  const row = await one()
  assert.deepEqual(
    [
      row.pod_uid,
      row.node,
      row.ts,
      row.interval_ms,
      row.cgroup_id,
      row.cpu_usage_millis,
      row.mem_current,
      row.runq_count,
      row.blame,
    ],
    ['other', 'node-b', ts, 1_000, 1, 0, 7, null, []],
  )
  assert.deepEqual(
    [row.cpu_quota_usec, row.cpu_request_millis, row.cpu_limit_millis, row.mem_limit, row.mem_request],
    Array(5).fill(null),
  )
})

test('POST /pod/compute/batch 200: when a container is in a post more than once, its last valid sample is stored', async () => {
  const c = sample()
  const as = (current: number) => ({ ...c, memory: { current } })
  assert.equal(await take(app, [as(1), sample({ namespace: 'else' }), as(2), { ...as(9), cpu: 0 }, as(3)]), 2)
  assert.equal((await one()).mem_current, 3)
})

test('POST /pod/compute/batch 200: a repeated post changes nothing but the time of the update', async () => {
  const body = tick([sample({ blame: [culprit(3)] }), sample()])
  const read = async () => {
    const { containers, nodes } = await latest(app)
    return [...containers, ...nodes].map(({ updated_at: _, ...row }) => row)
  }
  assert.equal((await app.post(PATH, body)).text, '{"accepted":2}')
  const first = await read()
  assert.equal((await app.post(PATH, body)).text, '{"accepted":2}')
  assert.deepEqual(await read(), first)
})

test('POST /pod/compute/batch 200: updated rows stay on their page and touch no index', async () => {
  const containers = Array.from({ length: 60 }, () => sample({ blame: [culprit(7), culprit(5), culprit(3)] }))
  const flushed = async () => {
    // Flushed on the connection that has just written: PostgreSQL reports its counts only after a while.
    await app.db.ingest((sql) => sql`select pg_stat_force_next_flush()`)
    const [counts] = await sql`
      select sum(n_tup_upd)::int as updates, sum(n_tup_hot_upd)::int as hot from pg_stat_user_tables where relname in ('compute_latest', 'compute_node')`
    return counts as unknown as { updates: number; hot: number }
  }
  await take(app, containers)
  let round = 0
  // An open transaction elsewhere keeps old row versions, which leave no room on the page: some rounds may fail.
  await until('all of a round stays in place', async () => {
    const before = await flushed()
    for (let n = 0; n < 6; n++) {
      round++
      await take(
        app,
        containers.map((c) => ({ ...c, memory: { current: round }, blame: [culprit(round)], cgroup_id: round })),
        { ts: inSecs(round), interval_ms: round },
      )
    }
    const now = await flushed()
    return now.updates - before.updates === 6 * 61 && now.hot - before.hot === 6 * 61
  })
})

describe('the row of the node', () => {
  test('POST /pod/compute/batch 200: a post without containers is a heartbeat', async () => {
    const ts = inSecs(-2)
    assert.equal(await take(app, [], { ts }), 0)
    const [{ updated_at, ...row }] = (await nodes(app)) as [Row]
    isNow(updated_at)
    assert.deepEqual(row, {
      ...{
        node: 'node-a',
        ts,
        interval_ms: 5_000,
        ctxt_per_sec: 1_200.5,
        compute_enabled: true,
        compute_supported: true,
        contention_loaded: true,
      },
      ...{
        cpu_some10: 10.5,
        cpu_full10: 1.25,
        mem_some10: 2.5,
        mem_full10: 0.75,
        cpu_cores: 8,
        memory_bytes: 34_359_738_368,
      },
      ...{ bpf_runq_enqueued: 11, bpf_runq_hist: 12, bpf_pair: 13, unknown_blame_share: 0.25 },
      ...{ bpf_hist_update_failures: 4, bpf_pair_update_failures: 5 },
    })
  })

  test('POST /pod/compute/batch 200: each post replaces the row of the node, and missing or malformed fields get defaults', async () => {
    await take(app, [])
    const [before] = await sql`select updated_at::text from compute_node`
    const bare = {
      ctxt_per_sec: undefined,
      node_pressure: undefined,
      node_capacity: 7,
      bpf_occupancy: [],
      unknown_blame_share: 'x',
    }
    await take(app, [sample()], {
      ...bare,
      compute_enabled: undefined,
      compute_supported: 'yes',
      contention_loaded: null,
      interval_ms: 300_000,
    })
    const [{ ts: _, updated_at: __, ...row }] = (await nodes(app)) as [Row]
    assert.deepEqual(row, {
      ...{
        node: 'node-a',
        interval_ms: 300_000,
        ctxt_per_sec: 0,
        compute_enabled: true,
        compute_supported: true,
        contention_loaded: false,
      },
      ...{
        cpu_some10: 0,
        cpu_full10: 0,
        mem_some10: 0,
        mem_full10: 0,
        cpu_cores: 0,
        memory_bytes: 0,
        bpf_runq_enqueued: 0,
        bpf_runq_hist: 0,
      },
      ...{ bpf_pair: 0, unknown_blame_share: 0, bpf_hist_update_failures: null, bpf_pair_update_failures: null },
    })
    const [after] = await sql`select updated_at::text from compute_node`
    assert.ok(after!.updated_at > before!.updated_at)
  })

  test('POST /pod/compute/batch 200: the row of the node is written even if its containers are skipped, and its numbers are clamped', async () => {
    const hostile = {
      node_pressure: { cpu_some10: -1, mem_some10: 1e300 },
      unknown_blame_share: 7,
      node_capacity: { cpu_cores: 1e-310, memory_bytes: 1.6 },
    }
    assert.equal(await take(app, [null], hostile), 0)
    const [row] = await nodes(app)
    assert.deepEqual(
      [row!.cpu_some10, row!.mem_some10, row!.unknown_blame_share, row!.cpu_cores, row!.memory_bytes],
      [0, MAX_COUNT, 1, 0, 2],
    )
  })
})

describe('times', () => {
  test('POST /pod/compute/batch 200: times are answered in UTC, in whole seconds', async () => {
    const second = inSecs(-1)
    const east = new Date(Date.parse(second) + 7_200_000).toISOString().replace('.000Z', '.999+02:00')
    assert.equal((await shown({}, { ts: east })).ts, second)
    assert.equal((await nodes(app))[0]!.ts, second)
  })

  test('POST /pod/compute/batch 200: a time more than five minutes ahead becomes now', async () => {
    const near = inSecs(280)
    assert.equal((await shown({}, { ts: near })).ts, near)
    for (const ts of [inSecs(320), '9999-12-31T23:59:59Z']) {
      isNow((await shown({}, { ts })).ts)
      isNow((await nodes(app))[0]!.ts)
    }
  })
})

describe('numbers', () => {
  const CPU_COUNTS = ['nr_periods', 'nr_throttled', 'throttled_usec'].map((key) => ['cpu', key, `cpu_${key}`])
  const MEMORY_COUNTS = [
    ...['current', 'working_set', 'refault', 'pgmajfault', 'oom_kill', 'events_high', 'events_max'].map((key) => [
      'memory',
      key,
      `mem_${key}`,
    ]),
  ]
  const LIMITS = [
    ...['quota_usec', 'request_millis', 'limit_millis'].map((key) => ['cpu', key, `cpu_${key}`]),
    ...['limit', 'request'].map((key) => ['memory', key, `mem_${key}`]),
  ]
  const FRACTIONS = ['cpu', 'memory'].flatMap((block) =>
    ['psi_some10', 'psi_full10'].map((key) => [block, key, `${block.slice(0, 3)}_${key}`]),
  )
  /** Sends each value in all of these places and compares what is stored. */
  const each = async (places: string[][], outcomes: [value: unknown, stored: unknown][]) => {
    const block = (name: string, value: unknown) =>
      Object.fromEntries(places.filter(([one]) => one === name).map(([, key]) => [key, value]))
    const rows = await allShown(
      outcomes.map(([value]) => ({ cpu: block('cpu', value), memory: block('memory', value) })),
    )
    for (const [i, [value, stored]] of outcomes.entries())
      for (const [, , column] of places) assert.equal(rows[i]![column!], stored, `${column} of ${value}`)
  }
  const NO_NUMBERS = [undefined, null, '5', true, [], {}]

  test('POST /pod/compute/batch 200: counts are rounded and clamped to 0 to 10^15; a value that is not a number is 0', async () => {
    await each(
      [...CPU_COUNTS, ...MEMORY_COUNTS],
      [
        ...NO_NUMBERS.map((value): [unknown, unknown] => [value, 0]),
        ...([
          [-1, 0],
          [-0.2, 0],
          [1.4, 1],
          [1.5, 2],
          [1e-310, 0],
          [MAX_COUNT, MAX_COUNT],
          [MAX_COUNT + 1, MAX_COUNT],
          [1e300, MAX_COUNT],
        ] as [unknown, unknown][]),
      ],
    )
  })

  test('POST /pod/compute/batch 200: a limit that is negative, above 10^15 or not a number is null', async () => {
    await each(LIMITS, [
      ...NO_NUMBERS.map((value): [unknown, unknown] => [value, null]),
      ...([
        [-1, null],
        [0, 0],
        [1.5, 2],
        [MAX_COUNT, MAX_COUNT],
        [MAX_COUNT + 1, null],
        [1e300, null],
      ] as [unknown, unknown][]),
    ])
  })

  test('POST /pod/compute/batch 200: fractions are clamped to 0 to 10^15; a value that is almost 0 or not a number is 0', async () => {
    await each(FRACTIONS, [
      ...NO_NUMBERS.map((value): [unknown, unknown] => [value, 0]),
      ...([
        [-1, 0],
        [1e-299, 1e-299],
        [5e-324, 0],
        [1e-301, 0],
        [0.1, 0.1],
        [1e300, MAX_COUNT],
      ] as [unknown, unknown][]),
    ])
  })

  test('POST /pod/compute/batch 200: a period that is not a number is 100000', async () => {
    await each(
      [['cpu', 'period_usec', 'cpu_period_usec']],
      [...NO_NUMBERS.map((value): [unknown, unknown] => [value, 100_000]), [0, 0], [-1, 0], [250_000, 250_000]],
    )
  })

  test('POST /pod/compute/batch 200: a count beyond the range of a double is 10^15, a limit is null', async () => {
    const body = JSON.stringify(tick([sample({ cpu: { throttled_usec: 0.125, quota_usec: 0.375 } })]))
      .replace('0.125', '1e999')
      .replace('0.375', '1e999')
    assert.equal((await app.post(PATH, body)).status, 200)
    const row = await one()
    assert.deepEqual([row.cpu_throttled_usec, row.cpu_quota_usec], [MAX_COUNT, null])
  })

  test('POST /pod/compute/batch 200: when the run queue is not an object its columns are null; otherwise missing values are 0', async () => {
    const runq = ['runq_count', 'runq_p50_us', 'runq_p95_us', 'runq_p99_us', 'runq_max_us', 'runq_overflow']
    for (const row of await allShown([undefined, null, 7, [], 'x'].map((value) => ({ runq: value }))))
      for (const key of runq) assert.equal(row[key], null)
    const row = await shown({ runq: { p99_us: -5, hist: 'x' } })
    for (const key of runq) assert.equal(row[key], 0)
  })

  test('POST /pod/compute/batch 200: 64-bit ids keep every digit; those above 2^63 - 1 are shown as negative numbers, other values are null', async () => {
    const digits: [sent: string, stored: string | null][] = [
      ['0', '0'],
      ['9007199254740991', '9007199254740991'],
      ['9007199254740993', '9007199254740993'],
      ['9223372036854775807', '9223372036854775807'],
      ['9223372036854775808', '-9223372036854775808'],
      ['18446744073709551615', '-1'],
      ['18446744073709551616', null],
      ['-1', null],
      ['1.5', null],
      ['"7"', null],
      ['true', null],
      ['null', null],
      ['1e400', null],
    ]
    const rows = digits.map(([sent], i) => {
      const row = sample({
        pod_name: `pod-${String(i).padStart(2, '0')}`,
        cgroup_id: 1,
        blame: [culprit(1, { cgroup_id: 1 })],
      })
      return JSON.stringify(row).replaceAll('"cgroup_id":1', `"cgroup_id": ${sent}`)
    })
    const body = JSON.stringify(tick([])).replace('"containers":[]', `"containers":[${rows}]`)
    assert.equal((await app.post(PATH, body)).text, `{"accepted":${digits.length}}`)
    const ids = await sql<
      { id: string | null; blame: string }[]
    >`select cgroup_id::text as id, blame from compute_latest order by container_uid`
    assert.deepEqual(
      ids.map(({ id }) => id),
      digits.map(([, stored]) => stored),
    )
    const { text } = await app.get('/compute/latest?namespace=shop')
    const shownIds = [...text.matchAll(/"cgroup_id":(null|-?\d+),/g)].map(([, id]) => id)
    assert.deepEqual(
      shownIds,
      digits.flatMap(([, stored]) => [`${stored}`, `${stored}`]),
    )
  })

  test('POST /pod/compute/batch 200: a 64-bit id under an escaped key is rounded to the nearest double', async () => {
    const body = JSON.stringify(tick([sample({ cgroup_id: 1 })])).replace(
      '"cgroup_id":1',
      '"cgroup\\u005fid":9007199254740993',
    )
    assert.equal((await app.post(PATH, body)).status, 200)
    const [row] = await sql`select cgroup_id::text as id from compute_latest`
    assert.equal(row!.id, '9007199254740992')
  })
})

describe('blame', () => {
  test('POST /pod/compute/batch 200: the five heaviest culprits are stored, the first of equal ones; the others are counted', async () => {
    const waits = [30, 10, 70, 20, 60, 30, 40, 30]
    const blame = waits.map((wait, i) => culprit(wait, { ref: `r${i}` }))
    const row = await shown({ blame })
    assert.deepEqual(
      row.blame.map(({ ref, wait_ns }: Row) => [ref, wait_ns]),
      [
        ['r2', 70],
        ['r4', 60],
        ['r6', 40],
        ['r0', 30],
        ['r5', 30],
      ],
    )
    assert.deepEqual([row.blame_omitted, row.blame_omitted_wait_ns], [3, 60])
  })

  test('POST /pod/compute/batch 200: the stored list has at most 1024 bytes of JSON; the first culprit that does not fit ends it', async () => {
    // An entry of this many bytes, with a character of two bytes.
    const entry = (bytes: number, wait: number) => {
      const bare = culprit(wait, { ref: 'é' })
      return { ...bare, ref: `é${'x'.repeat(bytes - Buffer.byteLength(JSON.stringify(bare)))}` }
    }
    const fits = await shown({ blame: [entry(500, 9), entry(521, 8)] })
    assert.deepEqual([fits.blame.length, fits.blame_omitted], [2, 0])
    const [stored] = await sql`select octet_length(blame) as bytes from compute_latest where pod_name = 'pod-0000'`
    assert.equal(stored!.bytes, 1_024)
    const over = await shown({ blame: [entry(500, 9), entry(522, 8), entry(150, 7)] })
    assert.deepEqual([over.blame.length, over.blame_omitted, over.blame_omitted_wait_ns], [1, 2, 15])
    const alone = await shown({ blame: [entry(1_023, 9)] })
    assert.deepEqual([alone.blame, alone.blame_omitted, alone.blame_omitted_wait_ns], [[], 1, 9])
  })

  test('POST /pod/compute/batch 200: a value that is not a list becomes an empty list; malformed entries are left out and counted as rejected', async () => {
    for (const { blame } of await allShown([undefined, null, 7, 'x', {}].map((blame) => ({ blame }))))
      assert.deepEqual(blame, [])
    const before = await rejected()
    const bad = [
      ...[
        null,
        7,
        [],
        {},
        culprit(9, { kind: undefined }),
        culprit(9, { kind: 7 }),
        culprit(9, { kind: 'k'.repeat(65) }),
      ],
      ...[
        culprit(9, { ref: undefined }),
        culprit(9, { ref: 'r'.repeat(1_025) }),
        culprit(9, { ref: 'a\0b' }),
        culprit(9, { kind: '\ud800' }),
      ],
      ...[culprit(9, { container_uid: 7 }), culprit(9, { container_uid: 'u'.repeat(513) })],
    ]
    const row = await shown({
      blame: [
        ...bad,
        culprit(5, { kind: 'unknown', ref: 'exited', container_uid: undefined, cgroup_id: 'x', count: -1 }),
      ],
    })
    assert.deepEqual(row.blame, [
      { cgroup_id: null, kind: 'unknown', ref: 'exited', container_uid: null, count: 0, wait_ns: 5 },
    ])
    assert.deepEqual([row.blame_omitted, row.blame_omitted_wait_ns, (await rejected()) - before], [0, 0, bad.length])
  })

  test('POST /pod/compute/batch 200: the sum of the waits that are left out stops at the greatest safe integer', async () => {
    const row = await shown({ blame: Array.from({ length: 20 }, () => culprit(1e300)) })
    assert.deepEqual(
      [row.blame[0].wait_ns, row.blame_omitted, row.blame_omitted_wait_ns],
      [MAX_COUNT, 15, Number.MAX_SAFE_INTEGER],
    )
  })
})

describe('rows that are skipped', () => {
  const MOST_BYTES: Record<string, number> = { container_uid: 512, pod_uid: 128 }
  const tooLong = (key: string) => 'é'.repeat(Math.floor((MOST_BYTES[key] ?? 253) / 2) + 1)
  const NAMES = ['container_uid', 'pod_uid', 'namespace', 'pod_name', 'container'] as const
  const bad: [what: string, row: unknown][] = [
    ...[null, 7, 'row', [], {}, true].map((row): [string, unknown] => [JSON.stringify(row), row]),
    ...[...NAMES, 'cpu', 'memory'].flatMap((key) =>
      [undefined, null, 5, true, []].map((value): [string, unknown] => [
        `${key} ${JSON.stringify(value)}`,
        { ...sample(), [key]: value },
      ]),
    ),
    ...NAMES.flatMap((key) =>
      ['', ' \t', 'a\0b', '\ud800', tooLong(key)].map((value): [string, unknown] => [
        `${key} ${JSON.stringify(value).slice(0, 20)}`,
        sample({ [key]: value }),
      ]),
    ),
  ]

  test('POST /pod/compute/batch 200: a malformed container is skipped and counted as rejected, the others are stored', async () => {
    const before = await rejected()
    const good = bad.map((_, i) => `good-${String(i).padStart(3, '0')}`)
    const between = bad.flatMap(([, row], i) => [sample({ pod_name: good[i] }), row])
    const accepted = await take(app, between)
    const [stored] =
      await sql`select array_agg(pod_name order by pod_name) as names from compute_latest where pod_name not like 'good-%'`
    assert.equal(stored!.names, null)
    assert.equal(accepted, good.length)
    assert.deepEqual(
      (await latest(app)).containers.map(({ pod_name }) => pod_name),
      good,
    )
    assert.equal((await rejected()) - before, bad.length)
  })

  test('POST /pod/compute/batch 200: one warning counts the skipped containers by the field at fault, without their values', async () => {
    // Only the first line of an app comes at once.
    const other = await startApp()
    await take(other, [null, sample({ pod_uid: 'secret-'.repeat(99) }), sample({ pod_uid: 7 })])
    assert.deepEqual(
      warnings(other).map(({ msg, entry, pod_uid }) => [msg, entry, pod_uid]),
      [[`${PATH}: compute samples were skipped, counted by the field at fault`, 1, 2]],
    )
    assert.ok(!JSON.stringify(other.logged).includes('secret'))
  })

  test('POST /pod/compute/batch 200: names of the greatest length, and names with quotes and control characters, are stored as sent', async () => {
    const odd = {
      pod_uid: '"\\\\",{}',
      namespace: 'null',
      pod_name: "';--\n\t\u001f",
      container: '\\',
      container_uid: 'NULL',
    }
    const long = {
      container_uid: 'é'.repeat(256),
      pod_uid: 'u'.repeat(128),
      namespace: 'null',
      pod_name: 'p'.repeat(253),
      container: 'c'.repeat(253),
    }
    const node = '"\\\u001f'
    assert.equal(await take(app, [sample(odd), sample(long)], { node }), 2)
    const { containers, nodes } = await latest(app, 'null')
    assert.deepEqual(
      containers.map((row) => Object.fromEntries(NAMES.map((key) => [key, row[key]]))),
      [odd, long].map((row) => Object.fromEntries(NAMES.map((key) => [key, row[key]]))),
    )
    assert.deepEqual(
      nodes.map((row) => row.node),
      [node],
    )
  })
})

describe('limits', () => {
  test('POST /pod/compute/batch 200: 5000 containers are accepted, one more is refused with 413', async () => {
    const small = (i: number) => ({
      container_uid: `u${i}`,
      pod_uid: 'u',
      namespace: 'n',
      pod_name: 'p',
      container: 'c',
      cpu: {},
      memory: {},
    })
    const containers = Array.from({ length: 5_000 }, (_, i) => small(i))
    assert.equal(await take(app, containers), 5_000)
    await sql`truncate compute_latest, compute_node`
    const over = await app.post(PATH, tick([...containers, small(5_000)]))
    assert.deepEqual([over.status, over.text], [413, 'body has more than 5000 elements'])
    assert.deepEqual(await nodes(app), [])
  })

  test('POST /pod/compute/batch 413: more than 5000 containers, even in a small body', async () => {
    const { status, text } = await app.post(PATH, tick(Array(5_001).fill(0)))
    assert.deepEqual([status, text], [413, 'body has more than 5000 containers'])
    assert.equal(await take(app, Array(5_000).fill(0)), 0)
  })

  test('POST /pod/compute/batch 413: a body of more than 16 MiB, plain or unpacked from gzip', async () => {
    const text = JSON.stringify(tick([sample()]))
    const padded = (bytes: number) => text + ' '.repeat(bytes - text.length)
    const gzip = { 'content-encoding': 'gzip' }
    assert.equal((await app.post(PATH, padded(MAX_BYTES))).status, 200)
    assert.equal((await app.post(PATH, gzipSync(padded(MAX_BYTES)), { headers: gzip })).status, 200)
    for (const [body, headers] of [
      [padded(MAX_BYTES + 1), {}],
      [gzipSync(padded(MAX_BYTES + 1)), gzip],
    ] as const) {
      const answer = await app.post(PATH, body, { headers })
      assert.equal(answer.status, 413)
      assert.match(answer.text, /16777216 bytes/)
    }
  })
})

describe('refused envelopes', () => {
  const bad: [what: string, fields: Fields, field: string][] = [
    ...[undefined, null, '', ' \n', 7, 'n'.repeat(254), 'é'.repeat(127)].map((node): [string, Fields, string] => [
      `node ${node}`,
      { node },
      'node',
    ]),
    ...[
      undefined,
      null,
      7,
      '',
      'now',
      '2026-01-01T00:00:00',
      '2026-13-01T00:00:00Z',
      '2026-02-30T00:00:00Z',
      '2026-01-01',
      `${'0'.repeat(70)}Z`,
    ].map((ts): [string, Fields, string] => [`ts ${ts}`, { ts }, 'ts']),
    ...[undefined, null, 0, -5_000, '5000', 1.5, 1e300, true].map((interval_ms): [string, Fields, string] => [
      `interval_ms ${interval_ms}`,
      { interval_ms },
      'interval_ms',
    ]),
    ...[undefined, null, {}, 'x', 7].map((containers): [string, Fields, string] => [
      `containers ${containers}`,
      { containers },
      'containers',
    ]),
  ]

  test('POST /pod/compute/batch 400: a bad field of the envelope is named in plain text, and nothing is written', async () => {
    for (const [what, fields, field] of bad) {
      const { status, text, headers } = await app.post(PATH, tick([sample()], fields))
      assert.equal(status, 400, what)
      assert.match(text, new RegExp(`^Json deserialize error: ${field}: .`), what)
      assert.match(headers.get('content-type')!, /^text\/plain/)
    }
    assert.deepEqual([(await latest(app)).containers, await nodes(app)], [[], []])
  })

  test('POST /pod/compute/batch 400: a malformed body or content type is refused', async () => {
    for (const { what, status, says, body, headers } of refusedBodies(tick([]), 'node')) {
      if (status === 413) continue
      const answer = await app.post(PATH, body, headers ? { headers } : {})
      assert.equal(answer.status, status, what)
      assert.match(answer.text, says, what)
    }
  })
})

test('POST /pod/compute/batch 200: two replicas write the same containers at once, in opposite orders, without a deadlock; each row is of one post', async () => {
  const replica = startReplica(app)
  const names = Array.from({ length: 300 }, (_, i) => unique(`raced-${i}`))
  const { retried } = app.db.ingest.stats
  const post = (current: number) => {
    const containers = names.map((pod_name) =>
      sample({ pod_name, namespace: 'raced', memory: { current, working_set: current } }),
    )
    return tick(current % 2 ? containers : containers.reverse(), { node: `node-${current % 3}`, ctxt_per_sec: current })
  }
  const statuses = await Promise.all(
    Array.from({ length: 12 }, async (_, i) =>
      i % 2 ? (await app.post(PATH, post(i))).status : replica.post(PATH, post(i)),
    ),
  )
  await replica.end()
  assert.deepEqual(new Set(statuses), new Set([200]))
  assert.equal(app.db.ingest.stats.retried, retried)
  const { containers, nodes } = await latest(app, 'raced')
  assert.equal(containers.length, 300)
  for (const row of containers) {
    assert.equal(row.mem_current, row.mem_working_set)
    assert.equal(row.node, `node-${row.mem_current % 3}`)
  }
  assert.equal(new Set(containers.map((row) => row.mem_current)).size, 1, 'all are of the post that came last')
  assert.equal(nodes.length, 1)
})

describe('access and faults', async () => {
  const guarded = await startApp({ ...TOKENS, DB_STATEMENT_TIMEOUT_MS: '300' })

  test('POST /pod/compute/batch 401: without a token', async () =>
    assertUnauthorized(await guarded.post(PATH, tick([]))))

  test('POST /pod/compute/batch 403: with a token for reading', async () =>
    assertForbidden(await guarded.post(PATH, tick([]), { token: TOKENS.BROKER_TOKEN_READ }), 'ingest'))

  test('POST /pod/compute/batch 503: a statement that is cancelled writes nothing', async () => {
    await whileLocked(guarded.sql, 'compute_node', async () =>
      assertDatabaseBusy(await guarded.post(PATH, tick([sample()]), { token: TOKENS.BROKER_TOKEN_INGEST })),
    )
    assert.deepEqual([...(await guarded.sql`select from compute_latest`)], [])
  })
})
