import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { MAX_SNAPSHOT_RULES } from '../../lib/profile/snapshot.ts'
import { hashSnapshot, storeFailure } from '../../lib/profile/versions/index.ts'
import { isWaiting } from '../jobs/scene.ts'
import { startApp } from '../support/app.ts'
import { newNamespace } from '../support/images.ts'
import { snapshotOf, state, storeState, summary, toDatabase, workload } from '../support/profile-versions.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const { sql } = app
const { job } = app.db

const newWorkload = () => workload(newNamespace())
type Key = ReturnType<typeof newWorkload>

const revisionsOf = async ({ namespace }: Key) =>
  (await sql`select revision from workload_profile_version where pod_namespace = ${namespace} order by 1`).map(
    ({ revision }) => revision,
  )
const listed = async ({ namespace }: Key) =>
  (
    await sql`
      select revision, content_hash as hash, posture_status as status, summary, has_drift, is_full,
             computed_at::text as computed, last_changed_at::text as changed
      from workload_profile where pod_namespace = ${namespace}`
  )[0]!
const failureOf = async ({ namespace }: Key) =>
  (await sql`select message from workload_profile_failure where pod_namespace = ${namespace}`)[0]?.message
const age = ({ namespace }: Key) => sql`
  update workload_profile set computed_at = computed_at - interval '1 day', last_changed_at = last_changed_at - interval '1 day'
  where pod_namespace = ${namespace}`

describe('one writer', () => {
  test('the first version is revision 1, with the snapshot as it was hashed', async () => {
    const key = newWorkload()
    assert.deepEqual(await storeState(job, key), { revision: 1, isNew: true })
    const { snapshotText, contentHash, dimensionHashes } = hashSnapshot(snapshotOf())
    const [row] = await sql`
      select cluster_id, workload_kind, workload_name, revision, content_hash, dimension_hashes, posture, snapshot::text as snapshot,
             created_at::text as created
      from workload_profile_version where pod_namespace = ${key.namespace}`
    const { created, ...stored } = row!
    assert.deepEqual(stored, {
      ...{ cluster_id: 'primary', workload_kind: 'Deployment', workload_name: 'books', revision: 1 },
      ...{ content_hash: contentHash, dimension_hashes: dimensionHashes, snapshot: snapshotText },
      posture: { coverage: 0.75, status: 'warn' },
    })
    const list = await listed(key)
    assert.deepEqual([list.revision, list.hash, list.status], [1, contentHash, 'warn'])
    assert.deepEqual([list.summary, list.has_drift, list.is_full], [summary(), false, false])
    assert.deepEqual([list.computed, list.changed], [created, created])
  })

  test('an equal hash makes no version, but the list has the new summary and time', async () => {
    const key = newWorkload()
    await storeState(job, key)
    await age(key)
    const before = await listed(key)
    const drift = { byType: { tagMoved: 2 }, count: 2 }
    const posture = { coverage: 1, status: 'risk' as const, unknownDimensions: [] }
    assert.deepEqual(await storeState(job, key, { summary: { drift, posture } }), { revision: 1, isNew: false })
    assert.deepEqual(await revisionsOf(key), [1])
    const now = await listed(key)
    assert.deepEqual([now.status, now.summary, now.has_drift], ['risk', summary({ drift, posture }), true])
    assert.equal(now.changed, before.changed)
    assert.ok(now.computed > before.computed)
    const [{ posture: kept }] = (await sql`
      select posture from workload_profile_version where pod_namespace = ${key.namespace}`) as unknown as [
      { posture: object },
    ]
    assert.deepEqual(kept, { coverage: 0.75, status: 'warn' })
  })

  test('another hash makes the next revision, also where an old state comes back', async () => {
    const key = newWorkload()
    await storeState(job, key, state(1))
    await age(key)
    const first = await listed(key)
    assert.deepEqual(await storeState(job, key, state(2)), { revision: 2, isNew: true })
    const second = await listed(key)
    assert.equal(second.changed, second.computed)
    assert.ok(second.changed > first.changed)
    assert.deepEqual(await storeState(job, key, state(1)), { revision: 3, isNew: true })
    assert.deepEqual(await revisionsOf(key), [1, 2, 3])
  })

  test('the newest versions are kept, as many as they may be', async () => {
    const key = newWorkload()
    for (let n = 1; n <= 5; n++) await storeState(job, key, { ...state(n), most: 3 })
    assert.deepEqual(await revisionsOf(key), [3, 4, 5])
    await storeState(job, key, { ...state(5), most: 1 })
    assert.deepEqual(await revisionsOf(key), [3, 4, 5])
    await storeState(job, key, { ...state(6), most: 1 })
    assert.deepEqual(await revisionsOf(key), [6])
  })

  test('workloads do not mix: another namespace, kind or name has versions of its own', async () => {
    const key = newWorkload()
    for (const other of [key, { ...key, kind: 'deployment' }, { ...key, name: 'book' }])
      assert.deepEqual(await storeState(job, other), { revision: 1, isNew: true })
    await storeState(job, key, { ...state(2), most: 1 })
    assert.deepEqual(await revisionsOf(key), [1, 1, 2])
  })

  test('the next revision is above that of the list, whose versions are gone', async () => {
    const key = newWorkload()
    for (let n = 1; n <= 3; n++) await storeState(job, key, state(n))
    await sql`delete from workload_profile_version where pod_namespace = ${key.namespace}`
    assert.deepEqual(await storeState(job, key, state(3)), { revision: 4, isNew: true })
    assert.equal((await listed(key)).revision, 4)
  })

  test('where the list lost its row, it says again when the hash became what it is', async () => {
    const key = newWorkload()
    await storeState(job, key)
    await sql`update workload_profile_version set created_at = '2026-01-01' where pod_namespace = ${key.namespace}`
    await sql`delete from workload_profile where pod_namespace = ${key.namespace}`
    await storeState(job, key)
    assert.equal((await listed(key)).changed, '2026-01-01 00:00:00')
  })

  test('the list never moves to a lower revision', async () => {
    const key = newWorkload()
    await storeState(job, key)
    await sql`update workload_profile set revision = 7, content_hash = 'other' where pod_namespace = ${key.namespace}`
    await storeState(job, key)
    assert.deepEqual([(await listed(key)).revision, (await listed(key)).hash], [7, 'other'])
  })

  test('a snapshot with all the rules that it may have is marked', async () => {
    const rules = (n: number) => Array.from({ length: n }, (_, port) => ({ ...toDatabase, port }))
    const key = newWorkload()
    await storeState(job, key, { snapshot: { network: { rules: rules(MAX_SNAPSHOT_RULES - 1) } } })
    assert.equal((await listed(key)).is_full, false)
    await storeState(job, key, { snapshot: { network: { rules: rules(MAX_SNAPSHOT_RULES) } } })
    assert.equal((await listed(key)).is_full, true)
  })
})

describe('failures', () => {
  test('one is kept, the newest; the next success deletes it', async () => {
    const [key, other] = [newWorkload(), newWorkload()]
    await storeFailure(job, other, 'stays')
    assert.equal(await storeFailure(job, key, 'first'), true)
    assert.equal(await storeFailure(job, key, 'first'), false)
    assert.equal(await storeFailure(job, key, 'second'), true)
    assert.equal(await failureOf(key), 'second')
    await storeState(job, key)
    await storeState(job, key)
    assert.deepEqual([await failureOf(key), await failureOf(other)], [undefined, 'stays'])
  })

  test('a message is on one line, at most 512 bytes, cut at a character', async () => {
    const key = newWorkload()
    await storeFailure(job, key, `a\0b\nc${'é'.repeat(300)}`)
    assert.equal(await failureOf(key), `a b c${'é'.repeat(253)}`)
  })
})

describe('two writers at once', () => {
  /** Stores `mine` in a transaction that ends once `other` waits for it. */
  async function race<T>(key: Key, mine: Parameters<typeof storeState>[2], other: () => Promise<T>) {
    let waits: Promise<T> | undefined
    const first = await sql.begin(async (transaction) => {
      const gate = ((statement: (on: typeof transaction) => unknown) => statement(transaction)) as unknown as typeof job
      const stored = await storeState(gate, key, mine)
      waits = other()
      await until('the other writer waits', () => isWaiting(sql))
      return stored
    })
    return [first, await waits!] as const
  }

  test('one that would make another state the same revision writes nothing', async () => {
    const key = newWorkload()
    await storeState(job, key, state(1))
    const before = await listed(key)
    const [first, second] = await race(key, state(2), () => storeState(job, key, { ...state(3), most: 1 }))
    assert.deepEqual(
      [first, second],
      [
        { revision: 2, isNew: true },
        { revision: null, isNew: false },
      ],
    )
    assert.deepEqual(await revisionsOf(key), [1, 2])
    const now = await listed(key)
    assert.equal(now.revision, 2)
    assert.notEqual(now.hash, before.hash)
  })

  test('one with the same state goes on, and no version is made twice', async () => {
    const key = newWorkload()
    const posture = { coverage: 1, status: 'ok' as const, unknownDimensions: [] }
    const [first, second] = await race(key, state(1), () => storeState(job, key, { ...state(1), summary: { posture } }))
    assert.deepEqual(
      [first, second],
      [
        { revision: 1, isNew: true },
        { revision: 1, isNew: false },
      ],
    )
    assert.deepEqual(await revisionsOf(key), [1])
    assert.equal((await listed(key)).status, 'ok')
  })

  test('however many write different states, revisions have no gap and the list shows the newest', async () => {
    const key = newWorkload()
    const stored = await Promise.all(Array.from({ length: 24 }, (_, n) => storeState(job, key, state(n % 5))))
    const revisions = await revisionsOf(key)
    assert.deepEqual(
      revisions,
      Array.from(revisions, (_, n) => n + 1),
    )
    assert.equal(stored.filter(({ isNew }) => isNew).length, revisions.length)
    const [newest] = await sql`
      select revision, content_hash as hash from workload_profile_version where pod_namespace = ${key.namespace}
      order by revision desc limit 1`
    const { revision, hash } = await listed(key)
    assert.deepEqual({ revision, hash }, { ...newest })
  })
})
