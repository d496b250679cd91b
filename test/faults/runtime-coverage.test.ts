/**
 * Heartbeats while answers are lost and from two replicas at once: acknowledged posts are stored, and losses of a
 * container count once (docs/contract.md#runtime-coverage). agents-kill.test.ts kills the broker.
 */
import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { containerId, type Fields, heartbeat, inSecs, PATH, stored, take } from '../runtime/heartbeats.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { startReplica } from '../support/routes.ts'
import { until } from '../support/until.ts'

const STORE = 'store_heartbeats'
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3

describe('a lost answer of the database', { timeout: 120_000 }, async () => {
  const app = await startLossyApp()
  beforeEach(() => app.sql`truncate runtime_coverage`)
  const post = async (entries: Fields[]) => {
    const { status, text } = await app.post(PATH, entries)
    return status === 200 ? [status, ...(Object.values(JSON.parse(text)) as number[])] : [status]
  }
  const lost = async () => (await stored(app.sql)).map(({ events_dropped, gaps }) => [events_dropped, gaps])

  for (const [fates, written] of [
    [['answer lost'], 0],
    [['answer lost', 'answer lost'], 0],
    [['question lost', 'answer lost'], 0],
    [['question lost'], 2],
  ] as [Fate[], number][])
    test(`${fates.join(', ')}: dropped events and gaps count once, and the answer counts ${written} written rows`, async () => {
      const first = [1, 2].map(() => heartbeat({ heartbeat_at: inSecs(-100), events_dropped: 5 }))
      app.lose(STORE, ...fates)
      assert.deepEqual(await post(first), [200, 2, 0, written])
      assert.equal(app.toCome, 0)
      const next = first.map((one) => ({ ...one, heartbeat_at: inSecs(-50), mode: 'exec' }))
      app.lose(STORE, ...fates)
      assert.deepEqual(await post(next), [200, 2, 0, written])
      for (let again = 0; again < 2; again++) {
        assert.deepEqual(await lost(), [
          [10, 1],
          [10, 1],
        ])
        assert.deepEqual(await post(next), [200, 2, 0, 0])
      }
    })

  test('while the first attempt is still under way: the second waits for it, and dropped events count once', async () => {
    const [held, fresh] = [heartbeat({ heartbeat_at: inSecs(-100) }), heartbeat({ events_dropped: 1 })]
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
      await sql`select from runtime_coverage for update`
      isHeld()
      await isReleased
    })
    await holding
    app.lose(STORE, 'left')
    const newer = { ...held, heartbeat_at: inSecs(-50), events_dropped: 3 }
    const answer = post([fresh, newer])
    await until('both attempts wait', async () => {
      const rows = await app.sql`
        select from pg_stat_activity where application_name = 'lossy' and wait_event_type = 'Lock' and datname = current_database()`
      return rows.length === 2
    })
    release()
    await holder
    assert.deepEqual((await answer).slice(0, 3), [200, 2, 0])
    const sums = Object.fromEntries((await stored(app.sql)).map((row) => [row.container_id, row.events_dropped]))
    assert.deepEqual(sums, { [held.container_id as string]: 3, [fresh.container_id as string]: 1 })
  })

  test('all attempts lost: 503, the stored row stays, and a repeated post changes nothing', async () => {
    const entries = [heartbeat({ events_dropped: 5 })]
    app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('answer lost'))
    assert.deepEqual(await post(entries), [503])
    assert.deepEqual(await post(entries), [200, 1, 0, 0])
    assert.deepEqual(await lost(), [[5, 0]])
  })
})

test('two replicas store the same containers at once, in opposite order: no deadlock, the newest post counts, and none twice', {
  timeout: 120_000,
}, async () => {
  const app = await startApp()
  const replica = startReplica(app)
  const deadlocks = async () =>
    (await app.sql`select deadlocks from pg_stat_database where datname = current_database()`)[0]!.deadlocks
  const old = await deadlocks()
  const [rounds, ids] = [depth(5, 10), Array.from({ length: depth(60, 150) }, containerId)]
  for (let round = 0; round < rounds; round++) {
    // Two posts, each sent to both replicas in opposite order.
    const batch = (n: number) =>
      ids.map((container_id) =>
        heartbeat({ container_id, heartbeat_at: inSecs(10 * round + n - 300), events_dropped: 1, unsent: n }),
      )
    const answers = await Promise.all(
      [1, 2].flatMap((n) => {
        const entries = batch(n)
        return [replica.post(PATH, entries), take(app, entries.toReversed()).then(() => 200)]
      }),
    )
    assert.deepEqual(answers, [200, 200, 200, 200])
    const rows = await stored(app.sql)
    assert.equal(rows.length, ids.length)
    for (const { unsent, gaps } of rows) assert.deepEqual([unsent, gaps], [2, 0])
  }
  await replica.end()
  // The older post is ignored if the newer one arrived first.
  for (const { events_dropped } of await stored(app.sql))
    assert.ok(events_dropped >= rounds && events_dropped <= 2 * rounds, String(events_dropped))
  assert.equal(await deadlocks(), old)
})
