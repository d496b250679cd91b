import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { chains } from '../../jobs/index.ts'
import { runtimeRetention } from '../../jobs/runtime-retention.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { abortedAfter, inside, startScene, waiting } from './scene.ts'

const DAY = 86_400
const BATCH_ROWS = 100
const scene = await startScene(runtimeRetention, { imageInventoryBatchSize: BATCH_ROWS })
const { ago, run, count, sql } = scene
const { config } = scene.context()

beforeEach(async () => {
  await sql`truncate runtime_executable, runtime_capability, runtime_coverage`
})

const withDays = (runtimeInventoryRetentionDays: number, more: Partial<typeof config> = {}) => ({
  config: { ...config, runtimeInventoryRetentionDays, ...more },
})

/** Stores a file as a post does, or updates the time at which it was last seen. */
const see = (path: string, seen: string, on = sql) => on`
  insert into runtime_executable (
    cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path, path_hash, path_complete, source, origin,
    first_seen, last_seen)
  values ('primary', 'shop', 'Deployment', 'web', 'web', '', 'exec', ${path}, sha256(convert_to(${path}, 'UTF8')), true, 'ebpf', 'image',
          ${ago(400 * DAY)}::text::timestamp, ${seen}::text::timestamp)
  on conflict (pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path_start, path_hash, cluster_id)
  do update set last_seen = excluded.last_seen`
/** Stores a container as a post does, or updates its last heartbeat. */
const beat = (id: string, at: string, on = sql) => on`
  insert into runtime_coverage (
    cluster_id, container_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, pod_name, node_name, mode, exec_probe,
    lib_probe, start_mode, tracking_since, covered_since, last_heartbeat, heartbeat_secs, gaps, events_dropped, unsent, incomplete, ended)
  values ('primary', ${id}, 'shop', 'Deployment', 'web', 'web', '', 'web-0', 'node', 'full', true, true, 'start', ${ago(400 * DAY)}::text::timestamp,
          ${ago(400 * DAY)}::text::timestamp, ${at}::text::timestamp, 300, 0, 0, 0, false, false)
  on conflict (container_id, cluster_id) do update set last_heartbeat = excluded.last_heartbeat`

/** Stores a capability as a post does, or updates the time of its last report. */
const report = (capability: string, at: string, on = sql) => on`
  insert into runtime_capability (
    cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted, probed, count, first_seen, last_seen,
    last_reported, last_post)
  values ('primary', 'shop', 'Deployment', 'web', 'web', '', ${capability}, true, false, 1, ${ago(400 * DAY)}::text::timestamp,
          ${ago(400 * DAY)}::text::timestamp, ${at}::text::timestamp, gen_random_uuid())
  on conflict (pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted, probed, cluster_id)
  do update set last_reported = excluded.last_reported`

interface Stored {
  files?: Record<string, number>
  capabilities?: Record<string, number>
  containers?: Record<string, number>
}
/** Stores files, capabilities and containers, each with the days since it was seen, reported or sent a heartbeat. */
const store = async ({ files = {}, capabilities = {}, containers = {} }: Stored) => {
  await Promise.all([
    ...Object.entries(capabilities).map(([name, days]) => report(name, ago(days * DAY))),
    ...Object.entries(files).map(([path, days]) => see(path, ago(days * DAY))),
    ...Object.entries(containers).map(([id, days]) => beat(id, ago(days * DAY))),
  ])
}
/** Stores files, each a second older than the one before, from `days` days ago. */
const manyFiles = (rows: number, days: number) => sql`
  insert into runtime_executable (
    cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path, path_hash, path_complete, source, origin,
    first_seen, last_seen)
  select 'primary', 'shop', 'Deployment', 'web-' || n % 7, 'web', '', 'exec', '/bin/' || n, sha256(convert_to('/bin/' || n, 'UTF8')), true,
         'ebpf', 'image', t, t
  from (select n, ${ago(days * DAY)}::text::timestamp - n * interval '1 s' as t from generate_series(1, ${rows}::int) n) n`
const manyCapabilities = (rows: number, days: number) => sql`
  insert into runtime_capability (
    cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted, probed, count, first_seen, last_seen,
    last_reported, last_post)
  select 'primary', 'shop', 'Deployment', 'web', 'web', '', 'CAP_' || lpad(n::text, 6, '0'), true, false, 1, t, t, t, gen_random_uuid()
  from (select n, ${ago(days * DAY)}::text::timestamp - n * interval '1 s' as t from generate_series(1, ${rows}::int) n) n`
const manyContainers = (rows: number, days: number) => sql`
  insert into runtime_coverage (
    cluster_id, container_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, pod_name, node_name, mode, exec_probe,
    lib_probe, start_mode, tracking_since, covered_since, last_heartbeat, heartbeat_secs, gaps, events_dropped, unsent, incomplete, ended)
  select 'primary', 'c' || lpad(n::text, 6, '0'), 'shop', 'Deployment', 'web', 'web', '', 'web-0', 'node', 'full', true, true, 'start', t, t, t,
         300, 0, 0, 0, false, n % 2 = 0
  from (select n, ${ago(days * DAY)}::text::timestamp as t from generate_series(1, ${rows}::int) n) n`
const filesLeft = async () =>
  (await sql<{ p: string }[]>`select path as p from runtime_executable order by path`).map(({ p }) => p)
const capabilitiesLeft = async () =>
  (await sql<{ c: string }[]>`select capability as c from runtime_capability order by capability`).map(({ c }) => c)
const containersLeft = async () =>
  (await sql<{ id: string }[]>`select container_id as id from runtime_coverage order by container_id`).map(
    ({ id }) => id,
  )
const total = async () =>
  Number(
    (
      await sql`
        select (select count(*) from runtime_executable) + (select count(*) from runtime_capability)
             + (select count(*) from runtime_coverage) as n`
    )[0]!.n,
  )

test('the job runs at the configured interval, first after 165 seconds, in a chain of its own; 0 days turn it off', () => {
  assert.equal(runtimeRetention.firstAfterSecs, 165)
  assert.equal(runtimeRetention.everySecs(withDays(30, { runtimeInventoryIntervalSecs: 77 }).config), 77)
  assert.equal(runtimeRetention.everySecs(withDays(0).config), null)
  assert.deepEqual(
    chains.filter((chain) => chain.includes(runtimeRetention)),
    [[runtimeRetention]],
  )
})

test('files not seen, capabilities not reported and containers without a heartbeat for 30 days are deleted; those that began earlier and continue stay', async () => {
  await store({
    files: { '/old': 31, '/young': 29, '/now': 0 },
    capabilities: { OLD: 31, YOUNG: 29, NOW: 0 },
    containers: { old: 31, young: 29, now: 0 },
  })
  assert.equal(config.runtimeInventoryRetentionDays, 30)
  assert.equal(await count(), 3)
  assert.deepEqual(await run(), { outcome: 'done', rows: 3, batches: 3 })
  assert.deepEqual(
    [await filesLeft(), await capabilitiesLeft(), await containersLeft()],
    [
      ['/now', '/young'],
      ['NOW', 'YOUNG'],
      ['now', 'young'],
    ],
  )
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 3 })
})

test('capabilities are kept for the window of the evidence in whole days and one day more, if that is longer', async () => {
  for (const [days, hours, kept] of [
    [3, 168, 8],
    [3, 169, 9],
    [3, 192, 9],
    [8, 168, 8],
    [9, 168, 9],
    [1, 24, 2],
    [30, 2160, 91],
  ] as const) {
    await store({ capabilities: { OLD: kept + 0.01, YOUNG: kept - 0.01 } })
    const changes = withDays(days, { capabilityEvidenceWindowHours: hours })
    assert.equal(await count(changes), 1)
    assert.equal((await run(changes)).rows, 1, `${days} days, ${hours} hours`)
    assert.deepEqual(await capabilitiesLeft(), ['YOUNG'])
  }
})

test('a capability that is reported again after the pass found it, before its deletion, stays', async () => {
  await store({ capabilities: { AGAIN: 31, OLD: 31 } })
  const pass = await scene.whileDeleting('runtime_capability', 'before', () => report('AGAIN', ago(0)))
  assert.equal(pass.rows, 1)
  assert.deepEqual(await capabilitiesLeft(), ['AGAIN'])
})

test('the configuration sets the number of days', async () => {
  await store({ files: { '/a': 4_000, '/b': 3 }, containers: { a: 4_000, b: 3 } })
  assert.equal((await run(withDays(4))).rows, 2)
  assert.deepEqual([await filesLeft(), await containersLeft()], [['/b'], ['b']])
  assert.equal((await run(withDays(2))).rows, 2)
})

test('a container that has ended is kept as long as the others', async () => {
  await store({ containers: { ended: 29 } })
  await sql`update runtime_coverage set ended = true`
  assert.equal((await run()).rows, 0)
})

test('a file or container exactly 30 days old stays, one a microsecond older is deleted', async () => {
  await sql.begin(async (transaction) => {
    const now = transaction as unknown as typeof sql
    for (const [name, age] of Object.entries({ at: '30 days', past: '30 days 0.000001 s', ahead: '-60 s' })) {
      const [row] = await now`select (now() at time zone 'utc' - ${age}::text::interval)::text as t`
      await see(`/${name}`, row!.t, now)
      await beat(name, row!.t, now)
    }
    assert.equal(await count({ db: inside(transaction) }), 2)
    assert.equal((await run({ db: inside(transaction) })).rows, 2)
  })
  assert.deepEqual(
    [await filesLeft(), await containersLeft()],
    [
      ['/ahead', '/at'],
      ['ahead', 'at'],
    ],
  )
})

describe('batches', () => {
  test('batches have the configured size, also when rows span several days or have the same time', async () => {
    await manyFiles(2 * BATCH_ROWS + 1, 31)
    await manyCapabilities(2 * BATCH_ROWS + 1, 31)
    await manyContainers(2 * BATCH_ROWS + 1, 31)
    assert.deepEqual(await run(), { outcome: 'done', rows: 6 * BATCH_ROWS + 3, batches: 9 })
    await manyFiles(2 * BATCH_ROWS, 31)
    await sql`update runtime_executable set last_seen = ${ago(31 * DAY)}::text::timestamp - (right(path, 1)::int * interval '1 day')`
    assert.deepEqual(await run(), { outcome: 'done', rows: 2 * BATCH_ROWS, batches: 5 })
    await manyContainers(2 * BATCH_ROWS, 31)
    assert.deepEqual(await run(), { outcome: 'done', rows: 2 * BATCH_ROWS, batches: 5 })
    assert.equal(await total(), 0)
  })

  test('a pass has at most 200 batches over all tables together, and the next pass continues', async () => {
    const one = withDays(30, { imageInventoryBatchSize: 1 })
    await manyFiles(96, 31)
    await manyCapabilities(99, 31)
    await manyContainers(6, 31)
    assert.deepEqual(await run(one), { outcome: 'capped', rows: 198, batches: 200 })
    assert.deepEqual([await filesLeft(), await capabilitiesLeft()], [[], []])
    assert.deepEqual(await containersLeft(), ['c000004', 'c000005', 'c000006'])
    assert.deepEqual(await run(one), { outcome: 'done', rows: 3, batches: 6 })
  })

  test('the oldest files are deleted first', async () => {
    await manyFiles(2 * BATCH_ROWS, 31)
    await sql`update runtime_executable set last_seen = last_seen - interval '2 days' where right(path, 1)::int % 2 = 0`
    await run(abortedAfter(1, scene.db))
    assert.equal((await filesLeft()).length, BATCH_ROWS)
    assert.deepEqual(
      (await filesLeft()).filter((path) => /[02468]$/.test(path)),
      [],
    )
  })

  test('expired containers are found among more containers than a statement reads', async () => {
    await manyContainers(20_001, 1)
    assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 4 })
    await sql`update runtime_coverage set last_heartbeat = ${ago(31 * DAY)}::text::timestamp where container_id in ('c000001', 'c020000', 'c020001')`
    assert.deepEqual(await run(), { outcome: 'done', rows: 3, batches: 4 })
  })
})

describe('concurrent posts', () => {
  test('rows that another transaction has locked are skipped, even a whole batch', async () => {
    await manyFiles(BATCH_ROWS + 10, 31)
    await manyContainers(BATCH_ROWS + 10, 31)
    await sql.begin(async (post) => {
      await post`select from runtime_executable order by last_seen_day limit ${BATCH_ROWS} for update`
      await post`select from runtime_coverage order by container_id limit ${BATCH_ROWS} for update`
      assert.equal((await run()).rows, 20)
    })
    assert.equal(await total(), 2 * BATCH_ROWS)
    assert.equal((await run()).rows, 2 * BATCH_ROWS)
  })

  test('a file that is seen again after the pass found it, before its deletion, stays', async () => {
    await store({ files: { '/again': 31, '/old': 31 } })
    const pass = await scene.whileDeleting('runtime_executable', 'before', () => see('/again', ago(0)))
    assert.equal(pass.rows, 1)
    assert.deepEqual(await filesLeft(), ['/again'])
  })

  test('a container with a heartbeat after the pass found it, before its deletion, stays', async () => {
    await store({ containers: { again: 31, old: 31 } })
    const pass = await scene.whileDeleting('runtime_coverage', 'before', () => beat('again', ago(0)))
    assert.equal(pass.rows, 1)
    assert.deepEqual(await containersLeft(), ['again'])
  })

  test('a file that is seen again while it is being deleted is stored again', async () => {
    await store({ files: { '/again': 31 } })
    let seen: Promise<unknown> | undefined
    const pass = await scene.whileDeleting('runtime_executable', 'after', async () => {
      seen = see('/again', ago(0)).execute()
      await until('the post waits', async () => (await waiting(sql)) > 1)
    })
    await seen
    assert.equal(pass.rows, 1)
    assert.deepEqual(await filesLeft(), ['/again'])
  })

  test('no file or heartbeat is lost when they are posted during a pass', async (t) => {
    const names = Array.from({ length: 30 }, (_, n) => `r${String(n).padStart(2, '0')}`)
    const db = scene.otherProcess(t)
    for (let round = 0; round < 5; round++) {
      await sql`truncate runtime_executable, runtime_capability, runtime_coverage`
      await store({
        files: Object.fromEntries(names.map((name) => [name, 31])),
        containers: Object.fromEntries(names.map((name) => [name, 31])),
      })
      await Promise.all([run({ db }), ...names.flatMap((name) => [see(name, ago(0)), beat(name, ago(0))])])
      assert.deepEqual([await filesLeft(), await containersLeft()], [names, names])
      assert.equal((await run()).rows, 0)
    }
  })
})

test('two processes at once delete every row once', async (t) => {
  await manyFiles(1_000, 31)
  await manyContainers(1_000, 31)
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 2_000)
  assert.equal(await total(), 0)
})

test('with the lock held elsewhere a pass reports skipped and does nothing; counting needs no lock', async () => {
  await store({ files: { '/old': 31 }, containers: { old: 31 } })
  await scene.whileLocked('runtime-retention', async () => {
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 })
    assert.equal(await count(), 2)
  })
  assert.equal(await total(), 2)
})

test('a pass aborted between two batches keeps its deletions, and the next pass does the rest', async () => {
  await manyFiles(BATCH_ROWS + 2, 31)
  await manyContainers(BATCH_ROWS + 2, 31)
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: BATCH_ROWS, batches: 1 })
  assert.deepEqual(await run(abortedAfter(3, scene.db)), { outcome: 'aborted', rows: BATCH_ROWS + 2, batches: 3 })
  assert.equal((await run()).rows, 2)
})

test('a pass leaves exactly the young files and containers, with any batch size', async () => {
  const age = fc.constantFrom(0, 2, 2.99, 3.01, 3.5, 6.99, 7.01, 400)
  await fc.assert(
    fc.asyncProperty(
      fc.array(age, { maxLength: 12 }),
      fc.array(age, { maxLength: 12 }),
      fc.constantFrom(1, 3, 7),
      fc.integer({ min: 1, max: 4 }),
      async (files, containers, days, imageInventoryBatchSize) => {
        await sql`truncate runtime_executable, runtime_capability, runtime_coverage`
        const named = (ages: number[]) => ages.map((one, n) => [`n${String(n).padStart(2, '0')}`, one] as const)
        await store({ files: Object.fromEntries(named(files)), containers: Object.fromEntries(named(containers)) })
        const kept = (ages: number[]) => named(ages).flatMap(([name, one]) => (one < days ? [name] : []))
        const gone = files.length + containers.length - kept(files).length - kept(containers).length
        const changes = withDays(days, { imageInventoryBatchSize })
        assert.equal(await count(changes), gone)
        const pass = await run(changes)
        assert.deepEqual([pass.outcome, pass.rows], ['done', gone])
        assert.deepEqual([await filesLeft(), await containersLeft()], [kept(files), kept(containers)])
      },
    ),
    { numRuns: depth(6, 20) },
  )
})
