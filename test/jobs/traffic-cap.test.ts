import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { trafficRetention } from '../../jobs/traffic-retention.ts'
import { abortedAfter, startScene } from './scene.ts'

const DAY = 86_400
const CAP = 50
const MESSAGE = 'a pod has more flows than the cap'
const scene = await startScene(trafficRetention, {
  trafficRetentionDays: 0,
  trafficRetentionBatchSize: 100,
  trafficMaxRowsPerPod: CAP,
})
const { ago, run, count, sql, logged } = scene
const { config } = scene.context()

beforeEach(async () => {
  await sql`truncate traffic, pod, pod_address, traffic_retention_cursor, traffic_deletion`
  logged.length = 0
})

/** Stores `n` flows of a pod, each a second younger than the one before. */
async function flows(
  n: number,
  secsAgo: number,
  pod = 'web',
  peer: string | null = null,
  namespace: string | null = 'shop',
): Promise<void> {
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, peer_kind, time_stamp)
    select format('%s/%s/%s/%s', ${namespace}::text, ${pod}::text, ${peer}::text, to_char(i + ${secsAgo}::bigint * 100000, 'FM000000000000000')), ${pod}::text, ${namespace}::text,
           ${peer}::text, ${ago(secsAgo)}::text::timestamp + i * interval '1 s'
    from generate_series(1, ${n}::int) i`
}

async function kept(): Promise<Record<string, number>> {
  const rows = await sql<{ pod: string; n: number }[]>`
    select concat_ws('/', coalesce(pod_namespace, '-'), pod_name, peer_kind) as pod, count(*)::int as n
    from traffic group by pod_namespace, pod_name, peer_kind order by 1`
  return Object.fromEntries(rows.map(({ pod, n }) => [pod, n]))
}

const warnings = () =>
  logged
    .filter(({ msg }) => msg === MESSAGE)
    .map(({ level, pod, namespace, rows, cap, deleted }) => [level, namespace, pod, rows, cap, deleted])

const cursor = async () => (await sql`select pod_name from traffic_retention_cursor`)[0]?.pod_name ?? null

test('the oldest flows without a peer of a pod above the cap are deleted down to the cap, and a warning names the pod', async () => {
  await scene.pod({ pod_name: 'web' })
  await flows(70, 1000)
  assert.deepEqual(await run(), { outcome: 'done', rows: 20, batches: 2 })
  const [row] =
    await sql`select count(*)::int as n, min(time_stamp) = ${ago(1000 - 21)}::text::timestamp as is_rest from traffic`
  assert.deepEqual({ ...row }, { n: CAP, is_rest: true })
  assert.deepEqual(warnings(), [[40, 'shop', 'web', 70, CAP, 20]])
})

test('each statement that deletes rows is counted, others are not', async () => {
  const deletions = async () => (await sql`select statements::int as n from traffic_deletion`).map(({ n }) => n)
  await flows(CAP, 1000)
  await run()
  assert.deepEqual(await deletions(), [])
  await flows(CAP + 250, 1000, 'above')
  await run()
  assert.deepEqual(await deletions(), [3])
})

test('a pod at the cap keeps all flows, a pod with one more loses one', async () => {
  await flows(CAP, 1000, 'at')
  await flows(CAP + 1, 1000, 'above')
  assert.equal((await run()).rows, 1)
  assert.deepEqual(await kept(), { 'shop/above': CAP, 'shop/at': CAP })
  assert.deepEqual(warnings(), [[40, 'shop', 'above', CAP + 1, CAP, 1]])
})

test('without a cap a pass reads and deletes nothing', async () => {
  await flows(70, 1000)
  const unlimited = { ...config, trafficMaxRowsPerPod: 0 }
  assert.deepEqual(await run({ config: unlimited }), { outcome: 'done', rows: 0, batches: 0 })
  assert.equal(await count({ config: unlimited }), 0)
})

test('flows with a peer of any kind count towards the cap, and are never deleted', async () => {
  await flows(30, 5000, 'web', 'pod')
  await flows(30, 4000, 'web', 'node')
  await flows(30, 3000, 'web', 'service')
  await flows(10, 2000)
  assert.equal(await count(), 10)
  assert.equal((await run()).rows, 10)
  assert.deepEqual(await kept(), { 'shop/web/node': 30, 'shop/web/pod': 30, 'shop/web/service': 30 })
  assert.deepEqual(warnings(), [[40, 'shop', 'web', 100, CAP, 10]])
})

test('pods differ by name and namespace, null being a namespace too; flows without a pod name have no cap', async () => {
  await flows(30, 1000, 'web', null, 'a')
  await flows(60, 1000, 'web', null, 'b')
  await flows(55, 1000, 'web', null, null)
  await sql`insert into traffic (uuid, time_stamp) select i::text, ${ago(10)}::text::timestamp from generate_series(1, 99) i`
  assert.equal(await count(), 15)
  assert.equal((await run()).rows, 15)
  assert.deepEqual(await kept(), { '-': 99, '-/web': CAP, 'a/web': 30, 'b/web': CAP })
  assert.deepEqual(warnings(), [
    [40, 'b', 'web', 60, CAP, 10],
    [40, null, 'web', 55, CAP, 5],
  ])
})

test('the cap ignores age: young flows above it are deleted, and old ones below it stay', async () => {
  await flows(30, 300 * DAY, 'few')
  await flows(60, 100, 'many')
  await run()
  assert.deepEqual(await kept(), { 'shop/few': 30, 'shop/many': CAP })
})

test('flows past the retention are deleted first, then those that are still above the cap', async () => {
  const both = { ...config, trafficRetentionDays: 14 }
  await flows(70, 20 * DAY, 'gone')
  await flows(70, 1000, 'gone', 'node')
  await flows(20, 500, 'gone')
  assert.equal(await count({ config: both }), 70 + 20)
  assert.equal((await run({ config: both })).rows, 90)
  assert.deepEqual(await kept(), { 'shop/gone/node': 70 })
  assert.equal(warnings()[0]![3], 90)
})

test('flows above the cap are deleted in batches', async () => {
  await flows(CAP + 250, 1000)
  assert.deepEqual(await run(), { outcome: 'done', rows: 250, batches: 4 })
  assert.deepEqual(await kept(), { 'shop/web': CAP })
  assert.deepEqual(warnings(), [[40, 'shop', 'web', CAP + 250, CAP, 250]])
})

test('a pass handles 100 pods; the next continues after them, and the one after starts from the first name', async () => {
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, peer_kind, time_stamp)
    select format('%s-%s', p, i), 'pod-' || to_char(p, 'FM000'), 'shop', 'pod', ${ago(10)}::text::timestamp
    from generate_series(1, 100) p, generate_series(1, ${CAP + 1}::int) i`
  await flows(60, 1000, 'pod-101')
  await flows(60, 1000, 'pod-102')
  assert.equal(await count(), 0)
  const pass = await run()
  // The first hundred pods have nothing to delete; the next pass still reaches the pods after them.
  assert.deepEqual(pass, { outcome: 'capped', rows: 0, batches: 101 })
  assert.equal(warnings().length, 100)
  assert.equal(await cursor(), 'pod-100')
  assert.equal(await count(), 20)
  assert.equal((await run()).rows, 20)
  assert.equal(await cursor(), null)
})

test('a pass ends after 200 batches', async () => {
  const config = { ...scene.context().config, trafficRetentionBatchSize: 10 }
  await flows(CAP + 2_050, 50_000)
  const pass = await run({ config })
  assert.deepEqual(pass, { outcome: 'capped', rows: 1_990, batches: 200 })
  assert.deepEqual(warnings(), [[40, 'shop', 'web', CAP + 2_050, CAP, 1_990]])
  assert.equal((await run({ config })).rows, 60)
})

test('pods above the cap are found after any number of flows of other pods', async (t) => {
  // A read takes 100 000 entries. The first ends within `b`, before it has read more entries of `b` than the cap. The
  // second ends within `d`, after it has read more entries of `d` than the cap.
  // The indexes that no read of the cap uses take most of the time of storing so many flows.
  const unused = await sql<{ name: string; definition: string }[]>`
    select indexname as name, indexdef as definition from pg_indexes
    where tablename = 'traffic' and indexname not in ('traffic_pkey', 'traffic_by_pod', 'traffic_newest')`
  for (const { name } of unused) await sql`drop index ${sql(name)}`
  t.after(async () => {
    await sql`truncate traffic`
    for (const { definition } of unused) await sql.unsafe(definition)
  })
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, peer_kind, time_stamp)
    select p || i, p, 'shop', 'pod', ${ago(10)}::text::timestamp
    from (values ('a', 99990), ('b', 60), ('c', 40), ('d', 99960), ('e', 45)) v (p, n), generate_series(1, n) i`
  await flows(60, 1000, 'e2')
  await run()
  assert.deepEqual(
    warnings().map(([, , pod, rows]) => [pod, rows]),
    [
      ['a', 99_990],
      ['b', 60],
      ['d', 99_960],
      ['e2', 60],
    ],
  )
})

test('a flow that gets a peer after the pass found it, before its deletion, stays', async () => {
  await flows(CAP + 2, 1000)
  const pass = await scene.whileDeleting('traffic', 'before', async () => {
    await sql`update traffic set peer_kind = 'pod' where time_stamp = (select min(time_stamp) from traffic)`
  })
  assert.equal(pass.rows, 1)
  assert.deepEqual(await kept(), { 'shop/web': CAP, 'shop/web/pod': 1 })
})

test('a flow that another transaction is writing is skipped, and others are deleted', async () => {
  await flows(CAP + 5, 1000)
  await sql.begin(async (other) => {
    await other`update traffic set syn_retries = 1 where time_stamp = (select max(time_stamp) from (select time_stamp from traffic order by 1 limit 3) t)`
    assert.equal((await run()).rows, 4)
  })
  assert.equal((await run()).rows, 1)
})

test('two processes at once never go below the cap', async (t) => {
  for (let pod = 0; pod < 20; pod++) await flows(CAP + 150, 1000, `web-${String(pod).padStart(2, '0')}`)
  await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  await run()
  assert.deepEqual([...new Set(Object.values(await kept()))], [CAP])
})

test('a pass aborted between two batches warns of its deletions, and the next pass does the rest', async () => {
  await flows(CAP + 250, 1000)
  // The cursor is read, the pods are found, one batch is deleted.
  const pass = await run(abortedAfter(3, scene.db))
  assert.deepEqual(pass, { outcome: 'aborted', rows: 100, batches: 2 })
  assert.deepEqual(warnings(), [[40, 'shop', 'web', CAP + 250, CAP, 100]])
  assert.equal((await run()).rows, 150)
})

test('a pass that loses its lock to another process does not move the cursor', async () => {
  for (let pod = 0; pod < 101; pod++) await flows(CAP + 1, 1000, `pod-${String(pod).padStart(3, '0')}`)
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let other: Promise<void> | undefined
  let answered = 0
  const ask = async (statement: Parameters<typeof scene.db.job>[0]) => {
    const rows = await scene.db.job(statement)
    // The cursor is read, and the first hundred pods are found.
    if (++answered === 2)
      await new Promise<void>((taken) => {
        other = scene.whileLocked('traffic-retention', () => {
          taken()
          return released
        })
      })
    return rows
  }
  const pass = await run({ db: { job: ask } as unknown as typeof scene.db })
  release()
  await other
  assert.deepEqual(pass, { outcome: 'skipped', rows: 0, batches: 1 })
  assert.equal(await cursor(), null)
  assert.equal((await run()).rows, 100)
  assert.equal(await cursor(), 'pod-099')
})

test('counting does not delete, warn or move the cursor', async () => {
  await flows(CAP + 250, 1000)
  await scene.whileLocked('traffic-retention', async () => assert.equal(await count(), 250))
  assert.deepEqual(await kept(), { 'shop/web': CAP + 250 })
  assert.deepEqual(warnings(), [])
  assert.equal(await cursor(), null)
})
