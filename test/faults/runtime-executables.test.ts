/**
 * Executables while answers are lost and from two replicas at once: acknowledged posts are stored, and repeats change
 * nothing (docs/contract.md#executables). agents-kill.test.ts kills the broker.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { at, executable, type Fields, PATH, stored, take } from '../runtime/executables.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { startReplica } from '../support/routes.ts'
import { until } from '../support/until.ts'

const STORE = 'store_executables'
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3

describe('a lost answer of the database', { timeout: 120_000 }, async () => {
  const app = await startLossyApp()
  const post = async (entries: Fields[]) => {
    const { status, text } = await app.post(PATH, entries)
    return [status, text.startsWith('{') ? Object.values(JSON.parse(text)) : []]
  }
  /** The rows with their row versions. */
  const versions = async () => [
    ...(await app.sql`select path, xmin::text, ctid::text, last_seen from runtime_executable order by path_start`),
  ]

  for (const [fates, written] of [
    [['answer lost'], 0],
    [['answer lost', 'answer lost'], 0],
    [['question lost', 'answer lost'], 0],
    [['question lost'], 2],
  ] as [Fate[], number][])
    test(`${fates.join(', ')}: rows are written once, and the answer counts ${written} of them`, async () => {
      const entries = [executable(), executable()]
      app.lose(STORE, ...fates)
      assert.deepEqual(await post(entries), [200, [2, 0, written]])
      assert.equal(app.toCome, 0)
      const before = await versions()
      assert.deepEqual(await post(entries), [200, [2, 0, 0]])
      assert.deepEqual(await versions(), before)
      const later = entries.map((entry) => ({ ...entry, last_seen: at(7_200) }))
      app.lose(STORE, ...fates)
      assert.deepEqual(await post(later), [200, [2, 0, written]])
      assert.equal((await versions()).length, before.length)
    })

  test('while the first attempt is still under way: the second waits for it, and a repeated post writes nothing', async () => {
    const [held, other] = [executable(), executable()]
    await post([held])
    let release = () => {}
    const isReleased = new Promise<void>((resolve) => {
      release = resolve
    })
    let isHeld = () => {}
    const holding = new Promise<void>((resolve) => {
      isHeld = resolve
    })
    const holder = app.sql.begin(async (sql) => {
      await sql`select from runtime_executable where path = ${held.path as string} for update`
      isHeld()
      await isReleased
    })
    await holding
    app.lose(STORE, 'left')
    const answer = post([other, { ...held, last_seen: at(7_200) }])
    await until('both attempts wait', async () => {
      const rows = await app.sql`
        select from pg_stat_activity where application_name = 'lossy' and wait_event_type = 'Lock' and datname = current_database()`
      return rows.length === 2
    })
    release()
    await holder
    const [status, counts] = await answer
    assert.equal(status, 200)
    assert.deepEqual((counts as number[]).slice(0, 2), [2, 0])
    assert.deepEqual(await post([other, { ...held, last_seen: at(7_200) }]), [200, [2, 0, 0]])
  })

  test('all attempts lost: 503, the stored rows stay, and a repeated post changes nothing', async () => {
    const entries = [executable(), executable()]
    app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('answer lost'))
    assert.deepEqual(await post(entries), [503, []])
    const before = await versions()
    assert.deepEqual(await post(entries), [200, [2, 0, 0]])
    assert.deepEqual(await versions(), before)
  })
})

test('two replicas store overlapping batches at once, in opposite order: no deadlock, and all posts are merged', {
  timeout: 120_000,
}, async () => {
  const app = await startApp()
  const replica = startReplica(app)
  const deadlocks = async () =>
    (await app.sql`select deadlocks from pg_stat_database where datname = current_database()`)[0]!.deadlocks
  const old = await deadlocks()
  const rounds = depth(6, 10)
  const paths = Array.from({ length: depth(60, 150) }, (_, n) => `/bin/${n}`)
  /** Each batch adds something to the merged rows. */
  const batch = (n: number) =>
    paths.slice((n % 4) * 10).map((path, i) =>
      executable({
        ...{
          path,
          container_name: `c-${i % 3}`,
          workload_name: 'web',
          origin: n === 13 ? 'memfd' : 'image',
          pod_name: `pod-${n}`,
        },
        ...{
          source: n === 7 ? 'ebpf' : 'backfill',
          path_complete: n === 21,
          first_seen: at(100_000 - n),
          last_seen: at(100_000 + 300 * n),
        },
      }),
    )
  let written = 0
  for (let round = 0; round < rounds; round++) {
    const answers = await Promise.all(
      [0, 1, 2, 3].map(async (i) => {
        const n = 4 * round + i
        const entries = i < 2 ? batch(n) : batch(n).reverse()
        if (i % 2 === 0) return replica.post(PATH, entries)
        const [accepted, dropped, changed] = await take(app, entries)
        assert.deepEqual([accepted, dropped], [entries.length, 0])
        written += changed!
        return 200
      }),
    )
    assert.deepEqual(answers, [200, 200, 200, 200])
  }
  await replica.end()
  assert.ok(written > 0)
  const expected = new Map<string, { first: number; last: number; posts: number[] }>()
  for (let n = 0; n < 4 * rounds; n++)
    for (const { path, container_name } of batch(n)) {
      const key = `${container_name} ${path}`
      const one = expected.get(key) ?? { first: n, last: n, posts: [] }
      expected.set(key, { first: Math.max(one.first, n), last: Math.max(one.last, n), posts: [...one.posts, n] })
    }
  const rows = await stored(app)
  assert.equal(rows.length, expected.size)
  for (const row of rows) {
    const { first, last, posts } = expected.get(`${row.container_name} ${row.path}`)!
    const isOfPost = (n: number) => posts.includes(n)
    assert.deepEqual(
      [row.first_seen, row.last_seen, row.last_pod_name, row.origin, row.source, row.path_complete],
      [
        at(100_000 - first),
        at(100_000 + 300 * last),
        `pod-${last}`,
        // The origin of a backfill is known only if it is deleted or memfd.
        isOfPost(13) ? 'memfd' : isOfPost(7) ? 'image' : 'unknown',
        isOfPost(7) ? 'ebpf' : 'backfill',
        isOfPost(21),
      ],
    )
  }
  assert.equal(await deadlocks(), old)
})
