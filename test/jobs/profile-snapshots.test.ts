import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { chains } from '../../jobs/index.ts'
import { profileSnapshots, snapshotsBy } from '../../jobs/profile-snapshots.ts'
import { DatabaseUnavailable } from '../../lib/db/index.ts'
import type { BuiltProfile, WorkloadKey } from '../../lib/profile/built.ts'
import { storeFailure } from '../../lib/profile/versions/index.ts'
import { digestOf } from '../support/images.ts'
import { profileOf, snapshotOf, state, storeState, workload } from '../support/profile-versions.ts'
import { until } from '../support/until.ts'
import { isWaiting, startScene } from './scene.ts'

/** Whether the stored flows are still being counted. */
const uncounted = false
const built = (key: WorkloadKey, n = 0): BuiltProfile => ({
  areFlowsCounted: !uncounted,
  profile: profileOf(),
  snapshot: snapshotOf({ images: { containers: { [key.name]: [digestOf(String(n))] } } }),
})

/** The names of the workloads that were computed, in this order. */
const order: string[] = []
/** What computing a workload does first; it may throw. */
let before: (key: WorkloadKey) => unknown = () => {}
/** A workload of which nothing is known. */
let unknown = ''
const job = snapshotsBy(async (_, key) => {
  order.push(key.name)
  await before(key)
  return key.name === unknown ? null : built(key)
})
const scene = await startScene(job, { profileSnapshotBatch: 3, profileSnapshotTickBudgetSecs: 600 })
const { ago, pod, run, count, sql, db } = scene

beforeEach(async () => {
  await sql`
    truncate workload_container, workload_syscalls, pod, pod_address, workload_profile, workload_profile_version,
             workload_profile_failure, workload_profile_turn`
  order.length = 0
  scene.logged.length = 0
  before = () => {}
  unknown = ''
})

const inInventory = (name: string, kind = 'Deployment') => sql`
  insert into workload_container
  values ('primary', 'shop', ${kind}, ${name}, 'web', ${digestOf(name)}, 'regular', 'r', '{}', '{}', null, null, null, null,
          ${ago(0)}::text::timestamp, ${ago(0)}::text::timestamp)`
const inUnion = (name: string) => sql`
  insert into workload_syscalls values ('shop', 'Deployment', ${name}, 'read', '{x86_64}', 'h', 1, ${ago(0)}::text::timestamp)`
const alive = (name: string, fields = {}) => pod({ workload_name: name, ...fields })
const key = (name: string) => workload('shop', name)
const computedAgo = async (name: string, secs: number) => {
  await storeState(db.job, key(name))
  await sql`update workload_profile set computed_at = ${ago(secs)}::text::timestamp where workload_name = ${name}`
}
const failedAgo = async (name: string, secs: number) => {
  await storeFailure(db.job, key(name), 'x')
  await sql`update workload_profile_failure set failed_at = ${ago(secs)}::text::timestamp where workload_name = ${name}`
}
const listed = async () =>
  (await sql`select workload_name as name from workload_profile order by 1`).map(({ name }) => name)
const failures = async () =>
  (await sql`select workload_name as name, message from workload_profile_failure order by 1`).map((row) => ({ ...row }))
const warnings = () => scene.logged.filter(({ level }) => Number(level) >= 40)

describe('candidates', () => {
  test('workloads of the inventory, of the observed syscalls and of live pods, each once', async () => {
    await inInventory('a')
    await inInventory('a', 'Job')
    await inUnion('a')
    await inUnion('b')
    for (const name of ['a', 'c', 'c']) await alive(name)
    await alive('dead', { is_dead: true })
    await alive('kindless', { workload_kind: null })
    await alive('', { workload_kind: null, workload_name: null })
    await alive('nameless', { workload_name: null })
    await alive('blank', { workload_kind: ' ' })
    await alive('', {})
    await alive('nowhere', { pod_namespace: null })
    assert.equal(await count(), 4)
    assert.deepEqual(await run(), { outcome: 'done', rows: 4, batches: 2 })
    assert.deepEqual([...order].sort(), ['a', 'a', 'b', 'c'])
    assert.deepEqual(await listed(), ['a', 'a', 'b', 'c'])
  })

  test('those with a live pod first, then the least recent attempt, failed or not, then by key', async () => {
    for (const name of ['gone-never', 'gone-old', 'z', 'y', 'old', 'failed', 'new', 'recent-failure'])
      await inInventory(name)
    for (const name of ['z', 'y', 'old', 'failed', 'new', 'recent-failure']) await alive(name)
    await computedAgo('gone-old', 9_000)
    await computedAgo('old', 500)
    await failedAgo('failed', 400)
    await computedAgo('new', 300)
    await computedAgo('recent-failure', 9_000)
    await failedAgo('recent-failure', 200)
    await run()
    assert.deepEqual(order, ['y', 'z', 'old', 'failed', 'new', 'recent-failure', 'gone-never', 'gone-old'])
  })

  test('after the clock was set back, those that were attempted in the future are attempted first, and once', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await inInventory(name)
    await computedAgo('a', 60)
    await computedAgo('c', -86_400)
    await failedAgo('d', -86_400)
    assert.equal((await run()).rows, 4)
    assert.deepEqual(order, ['b', 'c', 'd', 'a'])
  })

  test('a bare pod of the inventory has a live pod, also where it was posted without a workload or with half of one', async () => {
    await inInventory('a-gone', 'Pod')
    await inInventory('bare', 'Pod')
    await inInventory('half', 'Pod')
    await pod({ pod_name: 'bare', workload_kind: null, workload_name: null })
    await pod({ pod_name: 'half', workload_kind: 'ReplicaSet', workload_name: '' })
    await run()
    assert.deepEqual(order, ['bare', 'half', 'a-gone'])
  })

  test('what another process attempts during a pass is not computed again', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await inInventory(name)
    before = async ({ name }) => {
      if (name === 'a') await storeState(db.job, key('e'))
    }
    await run()
    assert.deepEqual(order, ['a', 'b', 'c', 'd'])
  })

  test('one of which nothing is known is left out, and the pass ends', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await inInventory(name)
    unknown = 'a'
    assert.deepEqual(await run(), { outcome: 'done', rows: 3, batches: 2 })
    assert.deepEqual(await listed(), ['b', 'c', 'd'])
  })
})

describe('a pass', () => {
  test('stores the profile as it was computed, and a version only where it changed', async () => {
    await inInventory('a')
    await run()
    await run()
    const [row] = await sql`
      select p.revision, p.posture_status as status, p.summary, v.posture, (select count(*)::int from workload_profile_version) as versions
      from workload_profile p join workload_profile_version v using (workload_name)`
    assert.deepEqual([row!.revision, row!.versions, row!.status], [1, 1, 'warn'])
    assert.deepEqual(row!.posture, { coverage: 0.25, status: 'warn' })
    assert.deepEqual(Object.keys(row!.summary), ['dimensions', 'drift', 'findingCounts', 'posture'])
  })

  test('keeps as many versions as are configured', async () => {
    await inInventory('a')
    for (let n = 1; n <= 3; n++) await storeState(db.job, key('a'), state(n))
    await run({ config: { ...scene.context().config, profileVersionsMaxPerWorkload: 2 } })
    const kept = await sql`select revision from workload_profile_version order by 1`
    assert.deepEqual(
      kept.map(({ revision }) => revision),
      [3, 4],
    )
  })

  test('with no time it computes one batch, and the next pass goes on where it ended', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await inInventory(name)
    const config = { ...scene.context().config, profileSnapshotTickBudgetSecs: 0 }
    assert.deepEqual(await run({ config }), { outcome: 'capped', rows: 3, batches: 1 })
    assert.deepEqual(await run({ config }), { outcome: 'capped', rows: 3, batches: 1 })
    assert.deepEqual(order, ['a', 'b', 'c', 'd', 'e', 'a'])
  })

  test('begins no batch once its time is over, which by default is the interval', async (t) => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) await inInventory(name)
    const config = { ...scene.context().config, profileSnapshotTickBudgetSecs: null, profileSnapshotIntervalSecs: 60 }
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    before = ({ name }) => {
      now += name === 'd' ? 57_000 : 1_000
    }
    const pass = await run({ config })
    assert.deepEqual([pass.outcome, pass.rows, pass.batches], ['capped', 6, 2])
  })

  test('stops between two workloads when the process ends, and keeps what it stored', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) await inInventory(name)
    const abort = new AbortController()
    before = ({ name }) => name === 'd' && abort.abort()
    assert.deepEqual(await run({ signal: abort.signal }), { outcome: 'aborted', rows: 4, batches: 1 })
    assert.deepEqual(await listed(), ['a', 'b', 'c', 'd'])
  })
})

describe('failures', () => {
  test('one is recorded and logged once, the pass goes on, and the next success deletes it', async () => {
    for (const name of ['a', 'b']) await inInventory(name)
    before = ({ name }) => {
      if (name === 'a') throw new Error(`broken\n${'é'.repeat(400)}`)
    }
    for (let n = 0; n < 2; n++) assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 1 })
    assert.deepEqual(await failures(), [{ name: 'a', message: `broken ${'é'.repeat(252)}` }])
    assert.deepEqual(await listed(), ['b'])
    assert.deepEqual(
      warnings().map(({ workload }) => workload),
      ['Deployment shop/a'],
    )
    before = () => {}
    await run()
    assert.deepEqual([await failures(), await listed()], [[], ['a', 'b']])
  })

  test('a message of the database that repeats values is not kept', async () => {
    await inInventory('a')
    before = () => db.job((query) => query`select ${'secret-value'}::text::integer`)
    await run()
    assert.deepEqual(await failures(), [{ name: 'a', message: 'database error 22P02' }])
    assert.ok(!JSON.stringify(scene.logged).includes('secret-value'))
  })

  test('without a connection the pass ends, and no workload is to blame', async () => {
    for (const name of ['a', 'b']) await inInventory(name)
    before = () => {
      throw new DatabaseUnavailable('gone', 'CONNECTION_CLOSED')
    }
    await assert.rejects(run(), DatabaseUnavailable)
    assert.deepEqual([order, await failures()], [['a'], []])
    before = () => {}
    assert.equal((await run()).rows, 2)
  })

  test('those of workloads that nothing names any more are deleted, also where nothing is computed', async () => {
    for (const name of ['imaged', 'seen', 'living', 'dead', 'never']) await failedAgo(name, 100)
    await sql`update workload_profile_failure set workload_kind = 'Pod' where workload_name = 'never'`
    await failedAgo('bare', 100)
    await sql`update workload_profile_failure set workload_kind = 'Pod' where workload_name = 'bare'`
    await inInventory('imaged')
    await inUnion('seen')
    await alive('living')
    await alive('dead', { is_dead: true })
    await pod({ pod_name: 'bare', workload_kind: null, workload_name: null })
    assert.equal(await count(), 5)
    before = () => {
      throw new Error('x')
    }
    assert.deepEqual(await run(), { outcome: 'done', rows: 2, batches: 2 })
    assert.deepEqual(
      (await failures()).map(({ name }) => name),
      ['bare', 'imaged', 'living', 'seen'],
    )
  })
})

describe('several processes', () => {
  test('only one computes at a time; the others skip, and may begin when it is done', async (t) => {
    for (const name of ['a', 'b']) await inInventory(name)
    const other = scene.otherProcess(t)
    before = async () => assert.deepEqual(await run({ db: other }), { outcome: 'skipped', rows: 0, batches: 0 })
    assert.equal((await run()).rows, 2)
    assert.deepEqual(order, ['a', 'b'])
    before = () => {}
    assert.equal((await run({ db: other })).rows, 2)
  })

  test('a process that died loses its turn after a while; one that was slow loses it to another', async (t) => {
    for (const name of ['a', 'b', 'c']) await inInventory(name)
    await sql`
      insert into workload_profile_turn (holder, held_until)
      values (gen_random_uuid(), now() at time zone 'utc' + interval '1 minute')`
    assert.equal((await run()).outcome, 'skipped')
    await sql`update workload_profile_turn set held_until = now() at time zone 'utc' - interval '1 second'`
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    before = async ({ name }) => {
      now += 31_000
      if (name === 'b') await sql`update workload_profile_turn set holder = gen_random_uuid()`
    }
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 2, batches: 0 })
    assert.equal((await sql`select from workload_profile_turn`).length, 1)
  })

  test('a turn that ends far in the future, from before the clock was set back, keeps nobody out', async () => {
    await inInventory('a')
    await sql`
      insert into workload_profile_turn (holder, held_until)
      values (gen_random_uuid(), now() at time zone 'utc' + interval '1 day')`
    assert.equal((await run()).rows, 1)
  })

  test('a turn is renewed while a pass goes on', async (t) => {
    for (const name of ['a', 'b']) await inInventory(name)
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    const ends: string[] = []
    before = async () => {
      now += 31_000
      const [turn] = await sql`select held_until::text from workload_profile_turn`
      ends.push(turn!.held_until)
    }
    assert.equal((await run()).rows, 2)
    assert.ok(ends[1]! > ends[0]!)
  })

  test('with the lock held elsewhere it reports skipped and does nothing', async () => {
    await inInventory('a')
    await scene.whileLocked('profile-snapshots', async () => {
      assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 })
      assert.equal(await count(), 1)
    })
    assert.deepEqual(order, [])
  })

  test('where another writer stored another state at that moment, the pass goes on', async () => {
    for (const name of ['a', 'b']) await inInventory(name)
    let pass: ReturnType<typeof run> | undefined
    await sql.begin(async (other) => {
      const gate = ((statement: (on: typeof other) => unknown) => statement(other)) as unknown as typeof db.job
      await storeState(gate, key('a'), state(1))
      pass = run()
      await until('the pass waits', () => isWaiting(sql))
    })
    assert.deepEqual(await pass, { outcome: 'done', rows: 1, batches: 1 })
    const [row] = await sql`select revision from workload_profile where workload_name = 'a'`
    assert.equal(row!.revision, 1)
  })
})

test('the configuration sets the interval; the job has a chain of its own and begins a minute after the start', () => {
  const { config } = scene.context()
  assert.equal(profileSnapshots.everySecs({ ...config, profileSnapshotIntervalSecs: 61 }), 61)
  assert.equal(profileSnapshots.firstAfterSecs, 60)
  assert.deepEqual(
    chains.filter((chain) => chain.includes(profileSnapshots)),
    [[profileSnapshots]],
  )
})
