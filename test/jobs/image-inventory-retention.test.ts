import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { imageInventoryRetention } from '../../jobs/image-inventory-retention.ts'
import { chains } from '../../jobs/index.ts'
import { container, digestOf, replica } from '../support/images.ts'
import { abortedAfter, inside, startScene } from './scene.ts'

const DAY = 86_400
const scene = await startScene(imageInventoryRetention, { imageInventoryBatchSize: 100 })
const { ago, pod, run, count, sql } = scene

beforeEach(async () => {
  await sql`truncate workload_container, image, pod, pod_address`
})

/** Stores images with these names, last seen `days` days ago. */
async function images(days: number, ...names: string[]): Promise<void> {
  for (const name of names)
    await sql`insert into image values (${digestOf(name)}, ${name}, '{}', 'repo', ${ago(days * DAY)}::text::timestamp, ${ago(days * DAY)}::text::timestamp)`
}
/** Stores a container `name` of the image `name`, last seen `days` days ago. */
async function row(
  name: string,
  days: number,
  fields: { pod?: string; state?: string; refDays?: number; reason?: string } = {},
): Promise<void> {
  const [time, ref] = [ago(days * DAY), fields.refDays === undefined ? null : ago(fields.refDays * DAY)]
  await sql`
    insert into workload_container
    values ('primary', 'shop', 'Deployment', 'web', ${name}, ${digestOf(name)}, 'regular', 'r', '{}', '{}', ${fields.pod ?? null},
            ${fields.state ?? null}, ${fields.reason ?? null}, ${ref}::text::timestamp, ${time}::text::timestamp, ${time}::text::timestamp)`
}
/** Stores `n` containers, each with an image of its own. */
async function many(n: number, days = 31): Promise<void> {
  await sql`
    insert into workload_container
    select 'primary', 'shop', 'Deployment', 'web', 'c' || n, 'sha256:' || md5(n::text) || md5(n::text), 'regular', 'r', '{}', '{}', null, null,
           null, null, ${ago(days * DAY)}::text::timestamp, ${ago(days * DAY)}::text::timestamp from generate_series(1, ${n}::int) n`
  await sql`insert into image select image_digest, null, '{}', 'repo', first_seen, last_seen from workload_container`
}
const left = async () => {
  const rows = await sql<{ name: string }[]>`select container_name as name from workload_container order by 1`
  return rows.map(({ name }) => name)
}
const imagesLeft = async () => {
  const rows = await sql<{ name: string }[]>`select repository as name from image order by 1`
  return rows.map(({ name }) => name)
}
const total = async () =>
  Number((await sql`select (select count(*) from workload_container) + (select count(*) from image) as n`)[0]!.n)

test('containers not reported for 30 days are deleted, then the images without a container', async () => {
  await images(31, 'old')
  await images(29, 'young')
  await row('old', 31)
  await row('young', 29)
  assert.equal(await count(), 2)
  assert.deepEqual(await run(), { outcome: 'done', rows: 2, batches: 2 })
  assert.deepEqual([await left(), await imagesLeft()], [['young'], ['young']])
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 2 })
})

test('a container or image exactly 30 days old stays, one a microsecond older is deleted', async () => {
  await sql.begin(async (now) => {
    for (const [name, age] of [
      ['at', '30 days'],
      ['past', '30 days 0.000001 s'],
    ] as const) {
      await now`
        insert into workload_container
        select 'primary', 'shop', 'Deployment', 'web', ${name}, ${digestOf('x')}, 'regular', 'r', '{}', '{}', null, null, null, null, t, t
        from (select now() at time zone 'utc' - ${age}::text::interval as t) a`
      await now`insert into image select ${digestOf(name)}, ${name}, '{}', 'repo', t, t from (select now() at time zone 'utc' - ${age}::text::interval as t) a`
    }
    assert.equal(await count({ db: inside(now) }), 2)
    assert.equal((await run({ db: inside(now) })).rows, 2)
  })
  assert.deepEqual([await left(), await imagesLeft()], [['at'], ['at']])
})

test('a container whose reference was seen within 30 days stays, with its image', async () => {
  await images(31, 'pulled', 'forgotten')
  await row('pulled', 31, { refDays: 29 })
  await row('forgotten', 31, { refDays: 31 })
  assert.equal(await count(), 2)
  assert.equal((await run()).rows, 2)
  assert.deepEqual([await left(), await imagesLeft()], [['pulled'], ['pulled']])
})

test('a running container with a living pod in its namespace stays at any age', async () => {
  await pod({ pod_name: 'alive' })
  await pod({ pod_name: 'dead', is_dead: true })
  await pod({ pod_name: 'elsewhere', pod_namespace: 'other' })
  const kept = { a: {}, b: { state: 'running' }, c: { state: 'waiting', reason: 'CrashLoopBackOff' } }
  const gone = {
    d: { state: 'terminated' },
    e: { state: 'waiting', reason: 'ImagePullBackOff' },
    f: { state: 'waiting' },
  }
  for (const [name, fields] of Object.entries({ ...kept, ...gone })) await row(name, 400, { pod: 'alive', ...fields })
  for (const name of ['dead', 'elsewhere', 'nobody']) await row(name, 400, { pod: name })
  await row('unnamed', 400)
  await images(400, ...Object.keys(kept), ...Object.keys(gone))
  assert.equal(await count(), 10)
  assert.equal((await run()).rows, 10)
  assert.deepEqual(
    [await left(), await imagesLeft()],
    [
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ],
  )
})

test('a container within the running window stays, even if that is longer than the retention', async () => {
  await row('app', 3)
  const config = { ...scene.context().config, imageInventoryRetentionDays: 1 }
  assert.equal((await run({ config: { ...config, imageRunningWindowSecs: 7 * DAY } })).rows, 0)
  assert.equal((await run({ config })).rows, 1)
})

test('an old image with a container stays, and a young image without one stays', async () => {
  await images(31, 'shared')
  await images(29, 'spare')
  await row('shared', 1)
  assert.equal((await run()).rows, 0)
  assert.deepEqual(await imagesLeft(), ['shared', 'spare'])
})

test('0 days turn the job off; the configuration sets the interval; the job has a chain of its own', () => {
  const { config } = scene.context()
  assert.equal(imageInventoryRetention.everySecs({ ...config, imageInventoryRetentionDays: 0 }), null)
  assert.equal(imageInventoryRetention.everySecs({ ...config, imageInventoryIntervalSecs: 61 }), 61)
  assert.deepEqual(
    chains.filter((chain) => chain.includes(imageInventoryRetention)),
    [[imageInventoryRetention]],
  )
})

test('batches have the configured size', async () => {
  await many(250)
  assert.deepEqual(await run(), { outcome: 'done', rows: 500, batches: 6 })
  assert.equal(await total(), 0)
})

test('a pass has at most 200 batches, and the next pass does the rest', async () => {
  await many(200)
  const config = { ...scene.context().config, imageInventoryBatchSize: 1 }
  assert.deepEqual(await run({ config }), { outcome: 'capped', rows: 200, batches: 200 })
  assert.equal((await run()).rows, 200)
})

test('a container that another transaction is writing is skipped, with its image', async () => {
  await many(3)
  const [first] = await left()
  await sql.begin(async (post) => {
    await post`update image set last_seen = now() at time zone 'utc' where digest = (select image_digest from workload_container where container_name = ${first!})`
    await post`update workload_container set last_seen = now() at time zone 'utc' where container_name = ${first!}`
    assert.equal((await run()).rows, 4)
  })
  assert.deepEqual(await left(), [first])
  assert.equal(await total(), 2)
})

test('containers that are posted during a pass are stored with their images', async (t) => {
  const bodies = Array.from({ length: 40 }, (_, i) => replica(`ns-${i}`, [container('app', digestOf(`raced-${i}`))]))
  const post = (body: unknown) => scene.post('/pod/spec', body)
  await Promise.all(bodies.map(post))
  const db = scene.otherProcess(t)
  for (let round = 0; round < 5; round++) {
    await sql`update workload_container set last_seen = last_seen - interval '40 days', last_pod_name = null`
    await sql`update image set last_seen = last_seen - interval '40 days'`
    scene.logged.length = 0
    const [, ...answers] = await Promise.all([run({ db }), ...bodies.map(post)])
    assert.ok(answers.every(({ status }) => status === 200))
    assert.deepEqual(
      scene.logged.filter(({ level }) => Number(level) >= 40),
      [],
    )
    assert.equal(await total(), 80)
  }
})

test('two processes at once remove every row once', async (t) => {
  await many(1500)
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 3000)
  assert.equal(await total(), 0)
})

test('with the lock held elsewhere it reports skipped and does nothing', async () => {
  await many(2)
  await scene.whileLocked('image-inventory-retention', async () =>
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 }),
  )
  assert.equal(await total(), 4)
})

test('a pass aborted between two batches keeps its deletions, and the next pass does the rest', async () => {
  await many(150)
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: 100, batches: 1 })
  assert.deepEqual(await run(), { outcome: 'done', rows: 200, batches: 3 })
})

test('counting returns the number of rows that a pass would delete, and deletes none', async () => {
  await many(3)
  await images(31, 'spare')
  await scene.whileLocked('image-inventory-retention', async () => assert.equal(await count(), 7))
  assert.equal(await total(), 7)
})
