/** Waits that no answer contains are deleted, and nothing else (docs/contract.md#compute). */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import fc from 'fast-check'
import { computeFold } from '../../jobs/compute-fold.ts'
import { readContention } from '../../lib/compute/contention.ts'
import { depth } from '../support/depth.ts'
import { emptyHistory, makeContainers } from './compute-minutes.ts'
import { startScene } from './scene.ts'

const MINUTE = 60
const DAYS = 7
/** The most pairs that an answer has of a victim. */
const MOST = 50
/** Windows that are read of each case: each begins at a wait. */
const WINDOWS = 24

const scene = await startScene(computeFold)
const { sql, run, count } = scene

beforeEach(async () => {
  await emptyHistory(sql)
  await makeContainers(sql, 1, 3)
})

interface Wait {
  readonly victim: number
  /** Whole minutes ago; half a minute is added, so that no wait is near the limit of a window. */
  readonly ago: number
  readonly ns: number
}

/** Stores the waits in order, so that later ones have larger ids. */
const store = async (waits: readonly Wait[]) => {
  await sql`
    insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, count, wait_ns)
    select w.victim, now() at time zone 'utc' - make_interval(mins => w.ago, secs => 30), 'pod', 'r', 1, w.ns
    from rows from (json_to_recordset(${JSON.stringify(waits)}::text::json) as (victim integer, ago integer, ns bigint))
      with ordinality w(victim, ago, ns, n)
    order by w.n`
  // As posts flag them: the longest waits of a victim in a minute.
  await sql`
    update compute_contention p set is_heaviest = not exists (
      select from compute_contention o where o.victim_id = p.victim_id and o.ts = p.ts and o.wait_ns > p.wait_ns)`
}

async function answer(minutes: number, perVictim: number): Promise<string[]> {
  const question = { node: 'node', namespace: null, podUid: null, minutes, perVictim, retentionDays: DAYS }
  const { pairs } = JSON.parse(String(await readContention(scene.db, question)))
  return pairs.map(
    ({ victim_container_uid, wait_ns, id }: Record<string, string>) => `${victim_container_uid} ${wait_ns} ${id}`,
  )
}

/** What is answered for windows that begin at these waits. */
const answers = (waits: readonly Wait[]) =>
  Promise.all(
    Array.from({ length: WINDOWS }, (_, i) => waits[Math.floor((i * waits.length) / WINDOWS)]).map((wait) =>
      answer((wait?.ago ?? 0) + 1, MOST),
    ),
  )
const rowsOf = async (table: string) => (await sql.unsafe(`select from ${table}`)).length

const victim = fc.integer({ min: 1, max: 3 })
const anyWait: fc.Arbitrary<Wait> = fc.record({
  victim,
  ago: fc.oneof({ weight: 3, arbitrary: fc.nat(400) }, { weight: 1, arbitrary: fc.nat(4_000) }),
  ns: fc.integer({ min: 1, max: 60 }),
})
/** Many waits of a victim within a few hours, which grow or shrink with time. */
const crowd = fc
  .record({
    victim,
    from: fc.nat(3_000),
    rows: fc.integer({ min: 60, max: 400 }),
    slope: fc.integer({ min: -3, max: 3 }),
    step: fc.constantFrom(0, 1, 2, 5, 20),
    spread: fc.constantFrom(1, 3, 101),
  })
  .map(({ victim, from, rows, slope, step, spread }) =>
    Array.from({ length: rows }, (_, n) => ({
      ...{ victim, ago: from + Math.floor((n * step) / 12) },
      ns: Math.max(1, 500 + slope * n + ((n * 7_919) % spread)),
    })),
  )

test('answers are the same before and after waits are moved and forgotten, whenever they come', async () => {
  let forgotten = 0
  const batch = fc.oneof(fc.array(anyWait, { maxLength: 200, size: 'max' }), crowd)
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 3 }), async (batches) => {
      await emptyHistory(sql)
      await makeContainers(sql, 1, 3)
      for (const waits of batches) {
        await store(waits)
        const before = await answers(waits)
        const [rows, kept] = [await rowsOf('compute_contention'), await rowsOf('compute_contention_kept')]
        const pass = await run()
        assert.equal(pass.outcome, 'done')
        assert.deepEqual(await answers(waits), before)
        forgotten += rows + kept - (await rowsOf('compute_contention')) - (await rowsOf('compute_contention_kept'))
        assert.equal(await count(), 0)
      }
    }),
    { numRuns: depth(10, 200) },
  )
  // The next test forgets one for certain.
  assert.ok(forgotten >= depth(0, 1))
})

test('a wait that 49 longer ones follow stays, and one that 50 longer ones follow is forgotten', async () => {
  /** Minutes since that minute of the hour four hours ago. */
  const since = (minute: number) => new Date().getUTCMinutes() + 4 * MINUTE - minute
  const longer = Array.from({ length: MOST - 1 }, (_, n) => ({ victim: 1, ago: since(25), ns: 1_000 + n }))
  await store([{ victim: 1, ago: since(5), ns: 7 }, { victim: 2, ago: since(5), ns: 7 }, ...longer])
  assert.equal(await count(), MOST + 1)
  assert.equal((await run()).rows, MOST + 1)
  assert.deepEqual([await rowsOf('compute_contention'), await rowsOf('compute_contention_kept')], [0, MOST + 1])
  await store([{ victim: 1, ago: since(25), ns: 999 }])
  await run()
  const waits = await sql<{ ns: number }[]>`
    select wait_ns::int as ns from compute_contention_kept where victim_id = 1 order by wait_ns`
  assert.deepEqual([waits.length, waits[0]!.ns], [MOST, 999])
})

test('waits of a steady load are nearly all forgotten', async () => {
  const waits = Array.from({ length: 30 * MINUTE * 10 }, (_, n) => ({
    victim: 1,
    ago: Math.floor(n / 10),
    ns: 1 + ((n * 7_919) % 100_003),
  }))
  await store(waits)
  await run()
  const [recent, kept] = [await rowsOf('compute_contention'), await rowsOf('compute_contention_kept')]
  assert.ok(recent <= 1_200, String(recent))
  assert.ok(kept <= 700, String(kept))
})

test('waits of the last hour stay where posts wrote them, and none moves while a replica of the release before may run', async () => {
  await store([{ victim: 1, ago: 30, ns: 1 }])
  await run()
  assert.deepEqual([await rowsOf('compute_contention'), await rowsOf('compute_contention_kept')], [1, 0])
  await store([{ victim: 1, ago: 200, ns: 1 }])
  await sql`update compute_fold set pack_after = (now() + interval '1 minute') at time zone 'utc'`
  await run()
  assert.deepEqual([await rowsOf('compute_contention'), await rowsOf('compute_contention_kept')], [2, 0])
})
