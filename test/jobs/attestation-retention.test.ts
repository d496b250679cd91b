import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import fc from 'fast-check'
import { attestationRetention } from '../../jobs/attestation-retention.ts'
import { chains } from '../../jobs/index.ts'
import { storeAttestation } from '../support/attestations.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { container, digestOf, replica } from '../support/images.ts'
import { until } from '../support/until.ts'
import { abortedAfter, inside, startScene, waiting } from './scene.ts'

const DAY = 86_400
const BATCH_ROWS = 5_000
const scene = await startScene(attestationRetention)
const { ago, run, count, sql } = scene
const { config } = scene.context()

beforeEach(async () => {
  await sql`truncate image_attestation, workload_container, image`
})

/** Stores a result for an image of the inventory, checked `days` days ago. */
const store = (name: string, days: number) =>
  storeAttestation(scene, digestOf(name), { repository: name, checked_at: ago(days * DAY) })
const forget = (...names: string[]) => sql`delete from image where digest in ${sql(names.map(digestOf))}`
/** Stores a container of the image `name`; the image itself may be missing from the inventory. */
const contain = (name: string, state = 'terminated') => sql`
  insert into workload_container
  values ('primary', 'shop', 'Deployment', 'web', ${name}, ${digestOf(name)}, 'regular', 'r', '{}', '{}', null, ${state}, null, null,
          now() at time zone 'utc', now() at time zone 'utc')`
/** Stores results without an image in the inventory, each a second older than the one before, from `days` days ago. */
const many = (rows: number, days: number) => sql`
  insert into image_attestation
  select 'sha256:' || md5(n::text) || md5(n::text), 'r', 'unsigned', null, null, null, null, '[]', '[]', '[]', '[]', '[]', '[]', '', t, t
  from (select n, ${ago(days * DAY)}::text::timestamp - n * interval '1 s' as t from generate_series(1, ${rows}::int) n) n`
const keepAll = () => sql`
  insert into image select digest, null, '{}', 'repo', now() at time zone 'utc', now() at time zone 'utc' from image_attestation on conflict do nothing`
const left = async () =>
  (await sql<{ name: string }[]>`select repository as name from image_attestation order by 1`).map(({ name }) => name)
const total = async () => Number((await sql`select count(*) as n from image_attestation`)[0]!.n)
const withDays = (attestationRetentionDays: number) => ({ config: { ...config, attestationRetentionDays } })

test('results not checked again for 7 days are deleted, also those of running images; younger ones stay', async () => {
  for (const [name, days] of Object.entries({ old: 8, running: 9, young: 6, now: 0 })) await store(name, days)
  await contain('running', 'running')
  assert.equal(await count(), 2)
  assert.deepEqual(await run(), { outcome: 'done', rows: 2, batches: 2 })
  assert.deepEqual(await left(), ['now', 'young'])
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 2 })
})

test('a result exactly 7 days old stays, one a microsecond older is deleted', async () => {
  await sql.begin(async (now) => {
    for (const [name, age] of [
      ['at', '7 days'],
      ['past', '7 days 0.000001 s'],
      ['ahead', '-60 s'],
    ] as const) {
      const [row] = await now<{ t: string }[]>`select (now() at time zone 'utc' - ${age}::text::interval)::text as t`
      await storeAttestation({ sql: now as unknown as typeof sql }, digestOf(name), {
        repository: name,
        checked_at: row!.t,
      })
    }
    assert.equal(await count({ db: inside(now) }), 1)
    assert.equal((await run({ db: inside(now) })).rows, 1)
  })
  assert.deepEqual(await left(), ['ahead', 'at'])
})

test('0 days keep results of any age; results of images that left the inventory are still deleted', async () => {
  await store('old', 4_000)
  await store('left', 0)
  await forget('left')
  assert.equal(await count(withDays(0)), 1)
  assert.deepEqual(await run(withDays(0)), { outcome: 'done', rows: 1, batches: 1 })
  assert.deepEqual(await left(), ['old'])
  assert.equal((await run(withDays(3_999))).rows, 1)
})

test('the configuration sets the number of days', async () => {
  await store('a', 3)
  assert.equal((await run(withDays(4))).rows, 0)
  assert.equal((await run(withDays(2))).rows, 1)
})

test('an image has left the inventory when it has neither a row nor a container in any state', async () => {
  for (const name of ['image', 'image-and-container', 'running', 'terminated', 'neither']) await store(name, 1)
  await forget('running', 'terminated', 'neither')
  await contain('image-and-container')
  await contain('running', 'running')
  await contain('terminated')
  assert.equal(await count(), 1)
  assert.equal((await run()).rows, 1)
  assert.deepEqual(await left(), ['image', 'image-and-container', 'running', 'terminated'])
})

test('the job runs each hour, first after 180 seconds, in a chain of its own, also with 0 days', () => {
  assert.equal(attestationRetention.firstAfterSecs, 180)
  for (const days of [0, 7]) assert.equal(attestationRetention.everySecs(withDays(days).config), 3_600)
  assert.deepEqual(
    chains.filter((chain) => chain.includes(attestationRetention)),
    [[attestationRetention]],
  )
})

test('deletion by age and by inventory both use batches of 5 000 rows', async () => {
  await many(2 * BATCH_ROWS + 1, 8)
  await keepAll()
  assert.deepEqual(await run(), { outcome: 'done', rows: 10_001, batches: 4 })
  await many(2 * BATCH_ROWS + 1, 1)
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 4 })
  await sql`truncate image`
  assert.deepEqual(await run(), { outcome: 'done', rows: 10_001, batches: 4 })
  assert.equal(await total(), 0)
})

test('results with one check time that exceed a batch are all deleted in one pass', async () => {
  await many(BATCH_ROWS + 1, 8)
  await keepAll()
  await sql`update image_attestation set checked_at = ${ago(8 * DAY)}::text::timestamp`
  assert.deepEqual(await run(), { outcome: 'done', rows: BATCH_ROWS + 1, batches: 3 })
})

test('a pass deletes at most 20 batches by age, the oldest first, and the next pass does the rest', {
  timeout: 900_000,
  skip: onlyFull,
}, async () => {
  await many(20 * BATCH_ROWS + 5, 8)
  await keepAll()
  const pass = await run()
  assert.deepEqual([pass.outcome, pass.rows], ['capped', 100_000])
  const [row] = await sql<{ youngest: string }[]>`select min(checked_at)::text as youngest from image_attestation`
  assert.equal(await total(), 5)
  assert.equal(row!.youngest, (await sql`select (${ago(8 * DAY)}::text::timestamp - interval '5 s')::text as t`)[0]!.t)
  assert.deepEqual([(await run()).rows, await total()], [5, 0])
})

test('an image that came back to the inventory, as a row or only as a container, keeps its result', async () => {
  for (const name of ['container', 'image', 'neither']) await store(name, 1)
  await forget('container', 'neither')
  await contain('container')
  const [answer] = await sql`select delete_attestations(array(select digest from image_attestation)) as rows`
  assert.equal(answer!.rows, 1)
  assert.deepEqual(await left(), ['container', 'image'])
})

test('a result that another transaction is writing is skipped until the next pass', async () => {
  for (const name of ['old', 'other']) await store(name, 8)
  await store('left', 1)
  await forget('left')
  await sql.begin(async (post) => {
    await post`update image_attestation set received_at = received_at where repository in ('old', 'left')`
    assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 2 })
  })
  assert.deepEqual(await left(), ['left', 'old'])
  assert.equal((await run()).rows, 2)
})

test('a pass deletes the results after a whole batch that another transaction has locked', async () => {
  await many(BATCH_ROWS + 10, 8)
  await keepAll()
  await sql.begin(async (post) => {
    await post`select from image_attestation order by checked_at limit ${BATCH_ROWS} for update`
    assert.equal((await run()).rows, 10)
  })
  assert.equal(await total(), BATCH_ROWS)
})

test('a result that is replaced after the pass found it, before its deletion, stays', async () => {
  for (const name of ['old', 'other']) await store(name, 8)
  await keepAll()
  const pass = await scene.whileDeleting('image_attestation', 'before', () => store('old', 0))
  assert.equal(pass.rows, 1)
  assert.deepEqual(await left(), ['old'])
})

test('a result that is posted while the old one is being deleted is stored', async () => {
  await store('old', 8)
  let checked: Promise<unknown> | undefined
  const pass = await scene.whileDeleting('image_attestation', 'after', async () => {
    checked = store('old', 0)
    await until('the result waits', async () => (await waiting(sql)) > 1)
  })
  await checked
  assert.equal(pass.rows, 1)
  assert.deepEqual(await left(), ['old'])
  const [row] =
    await sql`select checked_at > now() at time zone 'utc' - interval '1 hour' as is_new from image_attestation`
  assert.equal(row!.is_new, true)
})

test('an image that comes back after the pass read the inventory keeps its result: replaced, posted again unchanged, or not posted', async () => {
  for (const how of ['newer', 'same', 'not at all']) {
    await sql`truncate image_attestation, image`
    const row = await storeAttestation(scene, digestOf('back'), { repository: 'back', checked_at: ago(DAY) })
    await forget('back')
    // A row lock would make the batch skip the row. The wrapper makes it wait instead, after it has taken its snapshot.
    await sql.unsafe('alter function delete_attestations(text[]) rename to forget_at_once')
    await sql.unsafe(`
      create function delete_attestations(digests text[]) returns integer language plpgsql
      as $$ begin perform pg_advisory_xact_lock(78); return forget_at_once(digests); end $$`)
    try {
      let pass: ReturnType<typeof run> | undefined
      await sql.begin(async (other) => {
        await other`select pg_advisory_xact_lock(78)`
        pass = run()
        await until('the pass waits', async () => (await waiting(sql)) > 0)
        await sql`insert into image values (${digestOf('back')}, null, '{}', 'repo', now() at time zone 'utc', now() at time zone 'utc')`
        if (how === 'newer') await store('back', 0)
        if (how === 'same') {
          const again = { ...row, post: 'again' }
          const [answer] = await sql`select store_attestation(${JSON.stringify(again)}::text::json) as answer`
          assert.equal(answer!.answer, 'same')
        }
      })
      assert.equal((await pass!).rows, 0, how)
      assert.deepEqual(await left(), ['back'], how)
    } finally {
      await sql.unsafe('drop function delete_attestations(text[])')
      await sql.unsafe('alter function forget_at_once(text[]) rename to delete_attestations')
    }
  }
})

test('no result is lost when results and pods are posted during a pass', { timeout: 900_000 }, async (t) => {
  const names = Array.from({ length: depth(10, 30) }, (_, n) => `raced-${n}`)
  const db = scene.otherProcess(t)
  const post = async (name: string) => {
    assert.equal(
      (await scene.post('/pod/spec', replica('shop', [container(name, digestOf(name))], { workload_name: name })))
        .status,
      200,
    )
    await store(name, 0)
  }
  for (let round = 0; round < depth(2, 5); round++) {
    await sql`truncate image_attestation`
    await Promise.all(names.map((name) => store(name, round % 2 === 0 ? 8 : 1)))
    if (round % 2 === 1) await sql`truncate image, workload_container`
    await Promise.all([run({ db }), ...names.map(post)])
    assert.deepEqual(await left(), [...names].sort())
    assert.equal((await run()).rows, 0)
  }
})

test('two processes at once remove every row once', async (t) => {
  await many(12_000, 8)
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 12_000)
  assert.equal(await total(), 0)
})

test('with the lock held elsewhere it reports skipped and does nothing', async () => {
  await many(2, 8)
  await scene.whileLocked('attestation-retention', async () => {
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 })
    assert.deepEqual(await run(withDays(0)), { outcome: 'skipped', rows: 0, batches: 0 })
  })
  assert.equal(await total(), 2)
})

test('a pass aborted between two batches keeps its deletions, and the next pass does the rest', async () => {
  await many(BATCH_ROWS + 2, 8)
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: BATCH_ROWS, batches: 1 })
  assert.deepEqual(await run(), { outcome: 'done', rows: 2, batches: 2 })
})

test('counting returns the number of results that a pass would delete, each once, and deletes none', async () => {
  await many(3, 8)
  await store('old', 8)
  await store('young', 1)
  await scene.whileLocked('attestation-retention', async () => assert.equal(await count(), 4))
  assert.equal(await total(), 5)
})

test('a pass leaves exactly the young results of images in the inventory', {
  timeout: 900_000,
}, async () => {
  const result = fc.record({
    ageDays: fc.constantFrom(0, 2.9, 3.1, 6.9, 7.1, 400),
    hasImage: fc.boolean(),
    state: fc.constantFrom(null, null, 'running', 'terminated'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(result, { maxLength: 15 }), fc.constantFrom(0, 3, 7), async (results, days) => {
      await sql`truncate image_attestation, workload_container, image`
      for (const [n, { ageDays, hasImage, state }] of results.entries()) {
        const name = `r-${String(n).padStart(2, '0')}`
        await store(name, ageDays)
        if (!hasImage) await forget(name)
        if (state !== null) await contain(name, state)
      }
      const expected = results.flatMap(({ ageDays, hasImage, state }, n) =>
        (days === 0 || ageDays <= days) && (hasImage || state !== null) ? [`r-${String(n).padStart(2, '0')}`] : [],
      )
      assert.equal(await count(withDays(days)), results.length - expected.length)
      assert.equal(await total(), results.length)
      const pass = await run(withDays(days))
      assert.deepEqual([pass.outcome, pass.rows], ['done', results.length - expected.length])
      assert.deepEqual(await left(), expected)
      assert.equal((await run(withDays(days))).rows, 0)
    }),
    { numRuns: depth(6, 80) },
  )
})
