import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'
import { keep, minute, pairs } from './minutes.ts'
import { culprit, type Fields, inSecs, type Row } from './posts.ts'

const PATH = '/compute/contention'
const app = await startApp()
const { sql } = app

beforeEach(async () => {
  await sql`truncate compute_minute, compute_folded, compute_contention, compute_container`
})

const KEYS = [
  ...[
    'id',
    'ts',
    'node',
    'victim_container_uid',
    'victim_pod_uid',
    'victim_namespace',
    'culprit_cgroup_id',
    'culprit_kind',
    'culprit_ref',
  ],
  ...['culprit_container_uid', 'count', 'wait_ns'],
]
const waits = (rows: readonly Row[]) => rows.map(({ wait_ns }) => wait_ns)
const LONG = 10_000

test('GET /compute/contention 200: a pair has all posted fields, keys in wire order', async () => {
  const ts = inSecs(-30)
  const blame = [
    culprit(9_000, { count: 12 }),
    culprit(500, { kind: 'system', ref: 'kubelet.service', container_uid: null, cgroup_id: null }),
  ]
  const c = minute({ blame })
  await keep(app, [c], { ts })
  for (const filter of [{ namespace: 'shop' }, { node: 'node-a' }, { node: 'node-a', minutes: LONG }]) {
    const rows = await pairs(app, filter)
    for (const row of rows) assert.deepEqual(Object.keys(row), KEYS)
    assert.deepEqual(
      rows.map(({ id: _, ...row }) => row),
      blame.map((one) => ({
        ...{
          ts,
          node: 'node-a',
          victim_container_uid: c.container_uid,
          victim_pod_uid: c.pod_uid,
          victim_namespace: 'shop',
        },
        ...{
          culprit_cgroup_id: one.cgroup_id,
          culprit_kind: one.kind,
          culprit_ref: one.ref,
          culprit_container_uid: one.container_uid,
        },
        ...{ count: one.count, wait_ns: one.wait_ns },
      })),
    )
  }
})

test('GET /compute/contention 200: both filters apply, a blank filter is ignored, and unknown names match nothing', async () => {
  await keep(app, [minute({ blame: [culprit(1)] }), minute({ namespace: 'else', blame: [culprit(2)] })], {
    node: 'node-1',
  })
  await keep(app, [minute({ blame: [culprit(3)] })], { node: 'node-2' })
  for (const minutes of [5, LONG])
    for (const [filter, expected] of [
      [{ node: 'node-1' }, [2, 1]],
      [{ node: 'node-1', namespace: ' ' }, [2, 1]],
      [{ node: '', namespace: 'shop' }, [3, 1]],
      [{ node: 'node-1', namespace: 'shop' }, [1]],
      [{ node: 'node-2', namespace: 'else' }, []],
      [{ node: 'nobody' }, []],
      [{ namespace: 'nobody' }, []],
    ] as const)
      assert.deepEqual(
        waits(await pairs(app, { ...filter, minutes })).sort((a, b) => b - a),
        expected,
      )
})

test('GET /compute/contention 200: the pairs of one pod, wherever it ran, with the other filters', async () => {
  const of = (pod_uid: string, waits: number[], fields: object = {}) =>
    minute({ pod_uid, blame: waits.map((wait) => culprit(wait)), ...fields })
  await keep(app, [of('one', [1, 2]), of('two', [3]), of('one', [4], { namespace: 'else' })], { node: 'node-1' })
  await keep(app, [of('one', [5])], { node: 'node-2', ts: inSecs(-340 * 60) })
  for (const [filter, expected] of [
    [{ pod_uid: 'one' }, [4, 2, 1]],
    [{ pod_uid: 'one', per_victim: 1 }, [4, 2]],
    [{ pod_uid: 'one', namespace: 'else' }, [4]],
    [{ pod_uid: 'one', node: 'node-2' }, []],
    [{ pod_uid: 'one', node: 'node-2', minutes: LONG }, [5]],
    [{ pod_uid: 'nobody' }, []],
  ] as const)
    assert.deepEqual(
      waits(await pairs(app, filter)).sort((a, b) => b - a),
      expected,
      JSON.stringify(filter),
    )
})

test('GET /compute/contention 200: `per_victim` takes the longest waits of each victim, in short and long windows', async () => {
  const blame = Array.from({ length: 5 }, (_, i) => culprit(i + 1))
  await keep(app, [minute({ container_uid: 'a', blame }), minute({ container_uid: 'b', blame })])
  for (const minutes of [5, LONG])
    for (const [per_victim, expected] of [
      [2, [5, 4, 5, 4]],
      [0, [5, 5]],
      [999, [5, 4, 3, 2, 1, 5, 4, 3, 2, 1]],
    ] as const)
      assert.deepEqual(waits(await pairs(app, { node: 'node-a', minutes, per_victim })), expected)
})

test('GET /compute/contention 200: the default is 5 minutes, the greatest 60 without a node and 10080 with one', async () => {
  const c = minute()
  const sent: [wait: number, ago: number][] = [
    ...([
      [1, 4],
      [2, 6],
      [3, 50],
      [4, 70],
      [5, 350],
      [6, 370],
      [7, 10_070],
      [8, 10_090],
    ] as [number, number][]),
  ]
  for (const [wait, ago] of sent) await keep(app, [{ ...c, blame: [culprit(wait)] }], { ts: inSecs(-60 * ago) })
  const node = { node: 'node-a' }
  const namespace = { namespace: 'shop' }
  for (const [filter, most] of [
    [node, 1],
    [namespace, 1],
    [{ ...node, minutes: -3 }, 0],
    [{ ...node, minutes: 55 }, 3],
    [{ ...namespace, minutes: 55 }, 3],
    [{ ...namespace, minutes: 10_080 }, 3],
    [{ ...node, minutes: 360 }, 5],
    [{ ...node, minutes: 361 }, 5],
    [{ ...node, ...namespace, minutes: 375 }, 6],
    [{ ...node, minutes: 99_999 }, 7],
  ] as [Record<string, string | number>, number][])
    assert.deepEqual(
      waits(await pairs(app, filter)),
      Array.from({ length: most }, (_, i) => most - i),
      JSON.stringify(filter),
    )
})

test('GET /compute/contention 200: victims in byte order, of each the 50 longest waits, of equal waits the newest first', async () => {
  const of = (pod_name: string, blame: Fields[]) => minute({ pod_name, blame })
  for (let m = 0; m < 6; m++) {
    const crowd = Array.from({ length: 10 }, (_, i) => culprit(1_000 + Math.floor((i * 6 + m) / 2)))
    await keep(app, [of('b', [culprit(1)]), of('a', crowd), of('Z', [culprit(7), culprit(7)]), of('é', [culprit(1)])], {
      ts: inSecs(-10 - 20 * m),
    })
  }
  for (const filter of [
    { node: 'node-a' },
    { namespace: 'shop' },
    { node: 'node-a', namespace: 'shop' },
    { node: 'node-a', minutes: LONG },
  ]) {
    const rows = await pairs(app, filter)
    const victims = ['uid-Z/app', 'uid-a/app', 'uid-b/app', 'uid-é/app']
    assert.deepEqual([...new Set(rows.map((row) => row.victim_container_uid))], victims)
    const of = (victim: string) => rows.filter((row) => row.victim_container_uid === victim)
    assert.deepEqual(
      victims.map((victim) => of(victim).length),
      [12, 50, 6, 6],
    )
    assert.deepEqual(
      waits(of('uid-a/app')),
      Array.from({ length: 50 }, (_, i) => 1_029 - Math.floor(i / 2)),
    )
    for (const [i, row] of rows.entries()) {
      const next = rows[i + 1]
      if (next?.victim_container_uid === row.victim_container_uid && next?.wait_ns === row.wait_ns)
        assert.ok(row.id > next!.id)
    }
  }
})

test('GET /compute/contention 200: at most 10000 pairs, of the first victims', async () => {
  await sql`
    insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
    select 'u-' || lpad(n::text, 3, '0'), 'u', 'many', 'p', 'c', 'many' from generate_series(1, 205) n`
  await sql`
    insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, count, wait_ns)
    select id, now() at time zone 'utc' - make_interval(secs => n), 'pod', 'r', 1, n from compute_container, generate_series(1, 60) n`
  for (const filter of [{ node: 'many' }, { namespace: 'many' }, { node: 'many', minutes: LONG }]) {
    const rows = await pairs(app, filter)
    assert.deepEqual(
      [rows.length, rows[0]!.wait_ns, rows.at(-1)!.victim_container_uid, rows.at(-1)!.wait_ns],
      [10_000, 60, 'u-200', 11],
    )
  }
})

test('GET /compute/contention 200: names that need escaping are returned unchanged and in the same order', async () => {
  const odd = ['\u001f', '\u0001', '"'.repeat(200)]
  await keep(
    app,
    odd.map((name, i) =>
      minute({
        pod_name: name,
        namespace: odd[1],
        container_uid: `u-${i}`,
        pod_uid: name.slice(0, 100),
        blame: [culprit(2, { ref: name }), culprit(1)],
      }),
    ),
    { node: 'n\u001f' },
  )
  for (const filter of [{ node: 'n\u001f' }, { namespace: odd[1]! }, { node: 'n\u001f', minutes: LONG }]) {
    const rows = await pairs(app, filter)
    assert.deepEqual(
      rows.map((row) => [row.victim_container_uid, row.wait_ns, row.culprit_ref]),
      odd.flatMap((name, i) => [
        [`u-${i}`, 2, name],
        [`u-${i}`, 1, 'other/busy-0/app'],
      ]),
    )
    assert.deepEqual([rows[0]!.node, rows[0]!.victim_namespace, Object.keys(rows[0]!)], ['n\u001f', odd[1], KEYS])
  }
})

test('GET /compute/contention 400: the answer names the three filters of which one is needed', async () => {
  const { status, text } = await app.get(PATH)
  assert.equal(status, 400)
  assert.match(text, /expected a namespace, a node or a pod_uid/)
})

test('GET /compute/contention 400: without a namespace and a node, and with minutes that are not an integer, in plain text', async () => {
  for (const query of [
    '',
    '?minutes=5',
    '?namespace=&node=%20',
    '?namespace=a%00b',
    '?pod_uid=%20',
    '?pod_uid=a%00b',
    '?node=n&per_victim=few',
    '?node=n&minutes=few',
    '?node=n&minutes=',
  ]) {
    const { status, text, headers } = await app.get(PATH + query)
    assert.equal(status, 400, query)
    assert.match(text, /^Query deserialize error: /)
    assert.match(headers.get('content-type')!, /^text\/plain/)
  }
})

/** Index entries that a read of the pairs of a node visits, under the session settings of reads. */
async function entriesRead(minutes: number): Promise<number> {
  await pairs(app, { node: 'busy', minutes })
  const count = async () => {
    await app.db.read((on) => on`select pg_stat_force_next_flush()`)
    const [row] = await sql<{ reads: number }[]>`
      select coalesce(sum(idx_tup_read), 0)::float8 as reads from pg_stat_user_indexes where relname like 'compute_contention%'`
    return row!.reads
  }
  const before = await count()
  await pairs(app, { node: 'busy', minutes })
  return (await count()) - before
}

test('GET /compute/contention 200: a long window costs as much as its result, a short one as much as its content, also with statistics of an incomplete day', async () => {
  await keep(app, [minute({ namespace: 'busy', blame: [culprit(1)] })], { node: 'busy' })
  await sql`analyze compute_contention, compute_container`
  await sql`
    insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, count, wait_ns)
    select id, now() at time zone 'utc' - make_interval(secs => n * 20), 'pod', 'r', 1, (n * 7919) % 100000 from compute_container, generate_series(1, 30000) n`
  assert.ok((await entriesRead(10_080)) <= 200)
  assert.ok((await entriesRead(60)) <= 400)
})

describe('access and faults', async () => {
  const guarded = await startApp({
    ...TOKENS,
    DB_STATEMENT_TIMEOUT_MS: '300',
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '16',
  })
  const path = `${PATH}?node=n`
  const token = TOKENS.BROKER_TOKEN_READ

  test('GET /compute/contention 401: without a token', async () => assertUnauthorized(await guarded.get(path)))

  test('GET /compute/contention 503: 10000 KiB are charged', async () => {
    const release = await guarded.deps.budget.acquire(16 * 1024 - 9_999)
    assertShed(await guarded.get(path, { token }), 10_000, 16 * 1024)
    release()
    assert.equal((await guarded.get(path, { token })).status, 200)
  })

  test('GET /compute/contention 503: a statement that is cancelled', async () => {
    await whileLocked(guarded.sql, 'compute_container', async () =>
      assertDatabaseBusy(await guarded.get(path, { token })),
    )
  })
})
