import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { computeFold } from '../../jobs/compute-fold.ts'
import { computeRetention } from '../../jobs/compute-retention.ts'
import { chains } from '../../jobs/index.ts'
import { type Database, DatabaseBusy } from '../../lib/db/index.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import {
  difference,
  foldedAtOnce,
  type Minute,
  manyMinutes,
  minutesRead,
  plain,
  post,
  postFolded,
  runq,
  stored,
} from './compute-minutes.ts'
import { abortedAfter, inside, startScene, waiting } from './scene.ts'

const HOUR = 3_600
const DAY = 24 * HOUR
const scene = await startScene(computeFold)
const { run, count, sql } = scene
const { config } = scene.context()

/** The start of the current hour, read once, so that the tests stay right when the hour changes during the run. */
const [clock] = await sql<
  { secs: number }[]
>`select extract(epoch from date_trunc('hour', now() at time zone 'utc'))::float8 as secs`
const NOW = clock!.secs
const YESTERDAY = NOW - 24 * HOUR

beforeEach(async () => {
  await sql`truncate compute_minute, compute_folded, compute_usage, compute_uncounted`
  await sql`update compute_fold set folded_until = '-infinity', closed_until = '-infinity', counted_until = '-infinity',
                                    count_closed_until = '-infinity'`
})

const withHours = (computeHistoryMinuteHours: number, more: Partial<typeof config> = {}) => ({
  config: { ...config, computeHistoryMinuteHours, ...more },
})
const at = (...times: number[]): Minute[] => times.map((time) => ({ container: 1, at: time, values: plain(time % 97) }))
const line = async () => {
  const [row] = await sql<{ line: string }[]>`select extract(epoch from folded_until)::text as line from compute_fold`
  return Number(row!.line)
}
const lateMinutes = async () => (await sql`select from compute_minute where is_late`).length
const assertFolded = async (minutes: readonly Minute[], before = YESTERDAY) =>
  assert.equal(difference(await stored(sql), foldedAtOnce(minutes, before)), null)

test('the job runs at the configured interval, first after 90 seconds, after compute-retention in its chain, and never with 0 days', () => {
  assert.equal(computeFold.firstAfterSecs, 90)
  assert.equal(computeFold.everySecs({ ...config, computeRetentionIntervalSecs: 77 }), 77)
  assert.equal(computeFold.everySecs({ ...config, computeHistoryRetentionDays: 0 }), null)
  assert.deepEqual(
    chains.filter((chain) => chain.includes(computeFold)),
    [[computeRetention, computeFold]],
  )
})

describe('folding', () => {
  test('minutes of a container become one row for each five minutes; those of the last 24 hours stay minutes', async () => {
    const start = YESTERDAY - 2 * HOUR
    const minutes = [
      ...at(start, start + 60, start + 299, start + 300, YESTERDAY - 1, YESTERDAY, NOW - 60),
      { container: 2, at: start + 30, values: plain(5) },
    ]
    await post(sql, minutes)
    assert.equal(await count(), 6)
    const pass = await run()
    assert.deepEqual([pass.outcome, pass.rows], ['done', 6])
    await assertFolded(minutes)
    assert.equal((await stored(sql)).size, 4)
    assert.equal(await line(), YESTERDAY)
    assert.equal(await minutesRead(sql), minutes.length)
    assert.equal(await count(), 0)
    assert.equal((await run()).rows, 0)
    await assertFolded(minutes)
  })

  test('a row has the means, maxima and sums of its minutes, and the last values by time', async () => {
    const start = YESTERDAY - HOUR
    const minutes: Minute[] = [
      {
        container: 1,
        at: start + 240,
        values: { ...plain(600), cpu_quota_usec: null, cpu_usage_millis_last: 50, ...runq(30, [3]) },
      },
      {
        container: 1,
        at: start,
        values: { ...plain(100), cpu_usage_millis_max: 4000, cpu_quota_usec: 7, ...runq(50, [1, 2, 7]) },
      },
      { container: 1, at: start + 60, values: { ...plain(201), mem_limit: null } },
      { container: 2, at: start, values: plain(3) },
      { container: 2, at: start + 60, values: { ...plain(4), ...runq(0, null) } },
    ]
    await post(sql, minutes)
    await run()
    await assertFolded(minutes)
    const [row] = await sql`select * from compute_folded where container_id = 1`
    assert.deepEqual(
      [
        row!.cpu_usage_millis_avg,
        row!.cpu_usage_millis_max,
        row!.cpu_usage_millis_last,
        row!.cpu_quota_usec,
        row!.mem_current_avg,
      ],
      [(600 + 100 + 201) / 3, 4000, 50, null, '300'],
    )
    assert.deepEqual(
      [row!.mem_events_max, row!.runq_count, row!.runq_p99_us, row!.runq_hist],
      ['901', '80', '50', '{4,2,7}'],
    )
    const [other] = await sql`select * from compute_folded where container_id = 2`
    assert.deepEqual([other!.runq_count, other!.runq_hist], ['0', null], 'a run queue is unknown only where all are')
  })

  test('extreme values do not stop a fold: sums are capped at the largest bigint, and means stay within bounds', async () => {
    const start = YESTERDAY - HOUR
    const most = '9223372036854775807'
    const wild = (n: number, avg: unknown) => ({
      ...{
        container: 1,
        at: start + n,
        values: { ...plain(1), cpu_usage_millis_avg: avg, mem_current_avg: most, mem_refault: most },
      },
    })
    const hist = Array(24).fill(most)
    await post(sql, [
      wild(0, 'Infinity'),
      wild(1, 'NaN'),
      wild(2, 1.7e308),
      wild(3, 1.7e308),
      { container: 2, at: start, values: { cpu_usage_millis_avg: 5e-324, ...runq(1, hist) } },
      { container: 2, at: start + 60, values: { cpu_usage_millis_avg: 5e-324, ...runq(1, hist) } },
    ])
    await run()
    await post(sql, [
      wild(4, '-Infinity'),
      { container: 2, at: start + 61, values: { cpu_usage_millis_avg: 5e-324, ...runq(1, hist) } },
    ])
    assert.equal((await run()).rows, 2)
    const rows =
      await sql`select container_id, cpu_usage_millis_avg as mean, mem_refault, mem_current_avg, runq_hist from compute_folded order by 1`
    assert.deepEqual(
      rows.map(({ mean, mem_refault }) => [mean > 0 && mean <= 1e100, mem_refault]),
      [
        [true, most],
        [false, '3'],
      ],
    )
    assert.equal(rows[0]!.mem_current_avg, most)
    assert.equal(rows[1]!.runq_hist, `{${hist.join(',')}}`)
  })

  test('minutes older than the retention are not folded; late ones are, once the retention is longer', async () => {
    const old = NOW - 9 * DAY
    await post(sql, at(old, YESTERDAY - HOUR))
    assert.equal(await count(), 1)
    assert.equal((await run()).rows, 1)
    await assertFolded(at(YESTERDAY - HOUR))
    assert.equal(await line(), YESTERDAY)
    await post(sql, at(old + 1))
    assert.equal((await run()).rows, 0)
    assert.equal((await run(withHours(24, { computeHistoryRetentionDays: 1 }))).rows, 0)
    assert.equal((await run(withHours(48, { computeHistoryRetentionDays: 1 }))).rows, 0)
    await assertFolded(at(YESTERDAY - HOUR))
    assert.equal((await run(withHours(24, { computeHistoryRetentionDays: 30 }))).rows, 1)
    await assertFolded(at(old + 1, YESTERDAY - HOUR))
  })

  test('a posted five-minute row counts as one minute, and its values as the newest', async () => {
    const start = YESTERDAY - HOUR
    await postFolded(sql, [{ container: 1, at: start, values: { ...plain(9), ...runq(5, [1, 1]) } }])
    await post(sql, [
      { container: 1, at: start + 60, values: { ...plain(3), ...runq(7, [1]) } },
      { container: 1, at: start + 120, values: plain(0) },
    ])
    await run()
    const [row] = await sql`select *, cpu_usage_millis_avg as mean from compute_folded`
    assert.deepEqual(
      [
        row!.mean,
        row!.mem_current_avg,
        row!.cpu_usage_millis_last,
        row!.cpu_quota_usec,
        row!.mem_refault,
        row!.runq_p99_us,
        row!.runq_hist,
      ],
      [4, '4', 9, '9', '12', '7', '{2,1}'],
    )
    await postFolded(sql, [{ container: 2, at: start, secs: 600 }])
    await post(sql, [{ container: 2, at: start }])
    await run()
    assert.equal(
      (await sql`select from compute_folded where container_id = 2`).length,
      2,
      'a row of another length is another',
    )
  })

  test('the rows of a container for an hour are stored next to each other', async () => {
    const start = YESTERDAY - HOUR
    const times = Array.from({ length: 12 }, (_, i) => start + i * 300)
    await post(
      sql,
      times.flatMap((time) => [3, 1, 2].map((container) => ({ container, at: time }))),
    )
    assert.equal((await run()).batches, 5, 'three count, one rolls up, one merges')
    const rows = await sql<{ id: string }[]>`select container_id as id from compute_folded order by ctid`
    assert.deepEqual(
      rows.map(({ id }) => Number(id)),
      [...Array(12).fill(1), ...Array(12).fill(2), ...Array(12).fill(3)],
    )
  })

  test('an hour with too many minutes is folded in steps, and the fold line moves with each step', async () => {
    const start = YESTERDAY - HOUR
    const minutes = [1, 2, 3].flatMap((container) => [0, 60, 300, 900].map((secs) => ({ container, at: start + secs })))
    await post(sql, minutes)
    await sql`select compute_close(${new Date(YESTERDAY * 1000).toISOString()}::text::timestamp)`
    const step = async () => {
      const [row] =
        await sql`select minutes::int, buckets, is_last from compute_rollup_step('-infinity', 'infinity', 9)`
      return [row!.minutes, row!.buckets, row!.is_last, (await line()) - start]
    }
    assert.deepEqual(await step(), [9, 2, false, 600])
    await post(sql, at(start + 30))
    assert.equal(await minutesRead(sql), 13)
    assert.deepEqual(await step(), [3, 10, true, HOUR])
    assert.equal((await run()).rows, 1)
    assert.equal(await minutesRead(sql), 13)
  })

  test('a pass ends once it has folded 120 five-minute periods, and the next pass continues', async () => {
    const first = YESTERDAY - 30 * HOUR
    const minutes = Array.from({ length: 13 }, (_, i) => ({ container: 1, at: first + i * HOUR }))
    await post(sql, minutes)
    const pass = await run()
    assert.deepEqual([pass.outcome, pass.rows], ['capped', 10])
    assert.equal((await run()).outcome, 'done')
    await assertFolded(minutes)
  })
})

describe('late minutes', () => {
  test('a late minute is read as a minute until it is merged; then its row is the same as if it had been in time', async () => {
    const start = YESTERDAY - 3 * HOUR
    const first: Minute[] = [
      { container: 1, at: start + 60, values: { ...plain(7), ...runq(9, [1, 1]) } },
      { container: 1, at: start + 180, values: plain(2) },
    ]
    await post(sql, first)
    await run()
    const late: Minute[] = [
      { container: 1, at: start, values: { ...plain(1), ...runq(1, [1, 1, 1]) } },
      { container: 1, at: start + 240, values: { ...plain(8), mem_limit: null } },
      { container: 2, at: start + HOUR, values: plain(6) },
    ]
    await post(sql, late)
    assert.equal(await lateMinutes(), 3)
    assert.equal(await minutesRead(sql), 5)
    await assertFolded(first)
    assert.equal(await count(), 3)
    assert.equal((await run()).rows, 3)
    assert.equal(await lateMinutes(), 0)
    await assertFolded([...first, ...late])
    await post(sql, [...first, ...late])
    assert.equal((await run()).rows, 0, 'sent again they are known')
    await assertFolded([...first, ...late])
  })

  test('a late minute of the last 24 hours is not merged yet', async () => {
    await run(withHours(1))
    const minutes = at(NOW - 23 * HOUR, NOW - 26 * HOUR)
    await post(sql, minutes)
    assert.equal(await lateMinutes(), 2)
    assert.equal(await count(), 1)
    assert.equal((await run()).rows, 1)
    await assertFolded(minutes)
    assert.equal(await minutesRead(sql), 2)
  })

  test('a minute that is posted after its hour was closed, before it is folded, is late and counts once', async () => {
    const start = YESTERDAY - HOUR
    await post(sql, at(start))
    const { db } = scene.context()
    const stop = abortedAfter(1, db)
    assert.equal((await run(stop)).outcome, 'aborted')
    await post(sql, at(start + 60))
    assert.deepEqual([await lateMinutes(), await minutesRead(sql)], [1, 2])
    await run()
    await assertFolded(at(start, start + 60))
    assert.equal(await minutesRead(sql), 2)
  })

  test('a fold waits for open posts and folds their minutes', async () => {
    const start = YESTERDAY - HOUR
    let pass: Promise<unknown> | undefined
    await post(sql, at(start), async () => {
      pass = run()
      await until('the fold waits', async () => (await waiting(sql)) > 0)
    })
    await pass
    assert.equal(await lateMinutes(), 0)
    await assertFolded(at(start))
  })

  test('late minutes are merged in batches, those of one five-minute row together', async () => {
    await run()
    const start = YESTERDAY - HOUR
    await post(sql, at(...Array.from({ length: 30 }, (_, i) => start + i * 60)))
    const merge = async () => {
      const [row] = await sql`select minutes::int, is_last from compute_merge_step('-infinity', 'infinity', 7)`
      return [row!.minutes, row!.is_last]
    }
    assert.deepEqual(
      [await merge(), await merge(), await merge(), await merge()],
      [
        [10, false],
        [10, false],
        [10, false],
        [0, true],
      ],
    )
    assert.equal(await minutesRead(sql), 30)
  })
})

/** A minute within an hour and a half, mostly in the first 15 minutes, so that several share a row. */
const minute = fc.record({
  container: fc.integer({ min: 1, max: 3 }),
  at: fc
    .oneof(fc.integer({ min: 0, max: 900 }), fc.integer({ min: 0, max: 5_400 }))
    .map((secs) => YESTERDAY - 4 * HOUR + secs),
  values: fc
    .tuple(
      fc.nat(1_000),
      fc.option(fc.tuple(fc.nat(50), fc.array(fc.nat(9), { minLength: 1, maxLength: 24 }))),
      fc.boolean(),
    )
    .map(([n, queue, isUnlimited]) => ({
      ...plain(n),
      ...(isUnlimited ? { mem_limit: null, cpu_quota_usec: null } : {}),
      ...(queue ? runq(queue[0], queue[1]) : {}),
    })),
})
const step = fc.oneof(
  { weight: 3, arbitrary: fc.array(minute, { maxLength: 12 }) },
  { weight: 1, arbitrary: fc.integer({ min: 24, max: 29 }) },
)

test('posts and folds in any order give the same rows as folding all minutes at once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
      await sql`truncate compute_minute, compute_folded`
      await sql`update compute_fold set folded_until = '-infinity', closed_until = '-infinity'`
      const known = new Map<string, Minute>()
      for (const one of steps) {
        if (typeof one === 'number') await run(withHours(one))
        else {
          await post(sql, one)
          for (const sent of one) {
            const key = `${sent.container} ${sent.at}`
            if (!known.has(key)) known.set(key, sent)
          }
        }
        assert.equal(await minutesRead(sql), known.size)
      }
      await run()
      assert.equal(difference(await stored(sql), foldedAtOnce([...known.values()], YESTERDAY)), null)
      assert.equal(await minutesRead(sql), known.size)
    }),
    { numRuns: depth(3, 15) },
  )
})

describe('concurrency', () => {
  test('with the lock held elsewhere a pass reports skipped', async () => {
    await post(sql, at(YESTERDAY - HOUR))
    await run(abortedAfter(1, scene.db))
    await scene.whileLocked('compute-fold', async () => {
      assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 })
    })
    assert.equal((await run()).rows, 1)
  })

  test('concurrent folds fold each minute once', async (t) => {
    const minutes = Array.from({ length: 60 }, (_, i) => ({
      container: (i % 3) + 1,
      at: YESTERDAY - 8 * HOUR + i * 400,
    }))
    await post(sql, minutes)
    const other = scene.otherProcess(t)
    await Promise.all([run(), run({ db: other }), run(), run({ db: other })])
    await run()
    await assertFolded(minutes)
  })

  test('a statement that is too slow is tried again with fewer minutes', async () => {
    const minutes = at(YESTERDAY - HOUR, YESTERDAY - 1800)
    await post(sql, minutes)
    const { db } = scene.context()
    const tried: unknown[] = []
    const job = async (statement: (sql: unknown) => PromiseLike<unknown>) => {
      let lastValue: unknown
      statement((_: unknown, ...values: unknown[]) => {
        lastValue = values.at(-1)
      })
      const isFold = typeof lastValue === 'number' && lastValue > 20_000
      if (isFold && tried.push(lastValue) < 3) throw new DatabaseBusy('too slow', '57014')
      return db.job(statement as never)
    }
    assert.equal((await run({ db: { job } as unknown as Database })).rows, 2)
    assert.deepEqual(tried, [400_000, 100_000])
  })
})

test('minutes are found by the BRIN index on their time, without a sequential scan', async () => {
  const start = YESTERDAY - 5 * HOUR
  await manyMinutes(sql, start, 20_000)
  await sql`vacuum analyze compute_minute`
  await sql.begin(async (tx) => {
    // The counters may include earlier statements of the session, so only the difference counts.
    const scans = async () => {
      const rows = await tx<{ name: string; n: number }[]>`
        select c.relname as name, pg_stat_get_xact_numscans(c.oid)::int as n from pg_class c where c.relname like 'compute_minute_other%'`
      return Object.fromEntries(rows.map(({ name, n }) => [name, n]))
    }
    const before = await scans()
    await run({ db: inside(tx) })
    const since = Object.fromEntries(Object.entries(await scans()).map(([name, n]) => [name, n - before[name]!]))
    assert.deepEqual([since.compute_minute_other, since.compute_minute_other_pkey], [0, 0])
    assert.ok(since.compute_minute_other_ts_idx1! > 10)
    assert.ok((await tx`select from compute_folded`).length > 0)
  })
})
