import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { chains } from '../../jobs/index.ts'
import { profileRetention } from '../../jobs/profile-retention.ts'
import { state, storeState, workload } from '../support/profile-versions.ts'
import { abortedAfter, inside, startScene } from './scene.ts'

const DAY = 86_400
const scene = await startScene(profileRetention, { imageInventoryBatchSize: 100 })
const { ago, run, count, sql } = scene

beforeEach(async () => {
  await sql`truncate workload_profile, workload_profile_version, workload_profile_export`
})

/** Stores a workload of the list, computed so many days ago. */
const row = (name: string, days: number, kind = 'Deployment') => sql`
  insert into workload_profile
  values ('primary', 'shop', ${kind}, ${name}, 1, 'h', 'ok', '{}', false, false, ${ago(days * DAY)}::text::timestamp,
          ${ago(days * DAY)}::text::timestamp)`
/** Stores versions of a workload, of these days ago, from revision 1 on. */
async function versions(name: string, ...days: number[]): Promise<void> {
  for (const [i, day] of days.entries())
    await sql`
      insert into workload_profile_version
      values ('primary', 'shop', 'Deployment', ${name}, ${i + 1}, 'h', '{}', '{}', '{}', ${ago(day * DAY)}::text::timestamp)`
}
/** Stores recorded exports of these days ago. */
async function exported(name: string, ...days: number[]): Promise<void> {
  for (const day of days)
    await sql`
      insert into workload_profile_export (cluster_id, pod_namespace, workload_kind, workload_name, revision, content_hash, mode,
                                           artifacts, images, pod_security, exported_at)
      values ('primary', 'shop', 'Deployment', ${name}, null, 'h', 'audit', '{}', '{}', '{}', ${ago(day * DAY)}::text::timestamp)`
}
/** Stores `n` versions of workloads that are not in the list. */
const many = (n: number) => sql`
  insert into workload_profile_version
  select 'primary', 'shop', 'Deployment', 'w-' || n, 1, 'h', '{}', '{}', '{}', ${ago(91 * DAY)}::text::timestamp
  from generate_series(1, ${n}::int) n`
const listed = async () =>
  (await sql`select workload_name as name from workload_profile order by 1`).map(({ name }) => name)
const versionsLeft = async () =>
  (await sql`select workload_name || ' ' || revision as one from workload_profile_version order by 1`).map(
    ({ one }) => one,
  )
const exportsLeft = async () =>
  (
    await sql`
      select workload_name || ' ' || round(extract(epoch from ${ago(0)}::text::timestamp - exported_at) / ${DAY}) as one
      from workload_profile_export order by 1`
  ).map(({ one }) => one)

test('workloads that were not computed for 90 days leave the list', async () => {
  await row('old', 91)
  await row('young', 89)
  assert.equal(await count(), 1)
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 3 })
  assert.deepEqual(await listed(), ['young'])
})

test('older versions are deleted, except the newest one of a workload in the list', async () => {
  await row('live', 0)
  await row('still', 0)
  await row('still', 0, 'Job')
  await versions('live', 200, 100, 91, 1)
  await versions('still', 200, 100)
  await versions('gone', 200, 100, 89)
  assert.equal(await count(), 6)
  assert.equal((await run()).rows, 6)
  assert.deepEqual(await versionsLeft(), ['gone 3', 'live 4', 'still 2'])
})

test('older exports are deleted, except the newest one of a workload in the list', async () => {
  await row('live', 0)
  await row('still', 0)
  await exported('live', 200, 91, 1)
  await exported('still', 200, 100, 100)
  await exported('gone', 200, 89)
  assert.equal(await count(), 5)
  assert.equal((await run()).rows, 5)
  assert.deepEqual(await exportsLeft(), ['gone 89', 'live 1', 'still 100'])
})

test('a workload that leaves the list in a pass loses its last version and export in the same pass', async () => {
  await row('old', 91)
  await versions('old', 200, 100)
  await exported('old', 100)
  assert.equal(await count(), 4)
  assert.equal((await run()).rows, 4)
  assert.deepEqual([await listed(), await versionsLeft(), await exportsLeft()], [[], [], []])
})

test('what is exactly 90 days old stays, what is a microsecond older is deleted', async () => {
  await sql.begin(async (now) => {
    for (const [name, age] of [
      ['at', '90 days'],
      ['past', '90 days 0.000001 s'],
    ] as const) {
      const time = now`now() at time zone 'utc' - ${age}::text::interval`
      await now`insert into workload_profile values ('primary', 'shop', 'D', ${name}, 1, 'h', 'ok', '{}', false, false, ${time}, ${time})`
      await now`insert into workload_profile_version values ('primary', 'shop', 'Gone', ${name}, 1, 'h', '{}', '{}', '{}', ${time})`
    }
    assert.equal(await count({ db: inside(now) }), 2)
    assert.equal((await run({ db: inside(now) })).rows, 2)
  })
  assert.deepEqual([await listed(), await versionsLeft()], [['at'], ['at 1']])
})

test('a version and an export of another workload do not count', async () => {
  await row('web', 0)
  await versions('web', 100)
  await sql`
    insert into workload_profile_version
    values ('primary', 'shop', 'Job', 'web', 2, 'h', '{}', '{}', '{}', ${ago(0)}::text::timestamp),
           ('primary', 'other', 'Deployment', 'web', 3, 'h', '{}', '{}', '{}', ${ago(0)}::text::timestamp)`
  assert.equal((await run()).rows, 0)
})

test('0 days turn the job off; the configuration sets the interval; the job has a chain of its own', () => {
  const { config } = scene.context()
  assert.equal(profileRetention.everySecs({ ...config, profileVersionsRetentionDays: 0 }), null)
  assert.equal(profileRetention.everySecs({ ...config, profileVersionsIntervalSecs: 61 }), 61)
  assert.equal(profileRetention.firstAfterSecs, 180)
  assert.deepEqual(
    chains.filter((chain) => chain.includes(profileRetention)),
    [[profileRetention]],
  )
})

test('batches have the size of those of the image inventory, however many newest versions stay', async () => {
  await many(250)
  await sql`
    insert into workload_profile
    select 'primary', 'shop', 'Deployment', 'w-' || n, 1, 'h', 'ok', '{}', false, false, ${ago(0)}::text::timestamp, ${ago(0)}::text::timestamp
    from generate_series(101, 250) n`
  assert.deepEqual(await run(), { outcome: 'done', rows: 100, batches: 4 })
  assert.equal((await versionsLeft()).length, 150)
})

test('a workload that is being computed at this moment stays, with its newest version', async () => {
  await row('back', 91)
  await versions('back', 100)
  await sql.begin(async (other) => {
    await other`update workload_profile set computed_at = now() at time zone 'utc'`
    assert.equal((await run()).rows, 0)
  })
  assert.deepEqual([await listed(), await versionsLeft()], [['back'], ['back 1']])
})

test('a workload whose versions were all deleted gets its next one', async () => {
  const key = workload('shop', 'back')
  for (let n = 1; n <= 3; n++) await storeState(scene.db.job, key, state(n))
  await sql`update workload_profile_version set created_at = ${ago(100 * DAY)}::text::timestamp`
  await sql`update workload_profile set computed_at = ${ago(100 * DAY)}::text::timestamp`
  assert.equal((await run()).rows, 4)
  assert.deepEqual(await storeState(scene.db.job, key, state(3)), { revision: 1, isNew: true })
  assert.deepEqual(await listed(), ['back'])
})

test('with the lock held elsewhere it reports skipped and does nothing', async () => {
  await many(2)
  await scene.whileLocked('profile-retention', async () => {
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 })
    assert.equal(await count(), 2)
  })
  assert.equal((await versionsLeft()).length, 2)
})

test('two processes at once delete every row once', async (t) => {
  await many(1_500)
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.equal(passes[0].rows + passes[1].rows, 1_500)
  assert.deepEqual(await versionsLeft(), [])
})

test('a pass aborted between two batches keeps its deletions, and the next pass does the rest', async () => {
  await many(150)
  assert.deepEqual(await run(abortedAfter(2, scene.db)), { outcome: 'aborted', rows: 100, batches: 2 })
  assert.equal((await run()).rows, 50)
})
