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
  emptyHistory,
  foldedAtOnce,
  foldedRows,
  forms,
  type Minute,
  makeContainers,
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
const { run, count, sql, logged } = scene
const { config } = scene.context()

/** The start of the current hour, read once, so that the tests stay right when the hour changes during the run. */
const [clock] = await sql<
  { secs: number }[]
>`select extract(epoch from date_trunc('hour', now() at time zone 'utc'))::float8 as secs`
const NOW = clock!.secs
const YESTERDAY = NOW - 24 * HOUR

beforeEach(async () => {
  await emptyHistory(sql)
  await makeContainers(sql)
})

const withHours = (computeHistoryMinuteHours: number, more: Partial<typeof config> = {}) => ({
  config: { ...config, computeHistoryMinuteHours, ...more },
})
const at = (...times: number[]): Minute[] => times.map((time) => ({ container: 1, at: time, values: plain(time % 97) }))
const assertFolded = async (minutes: readonly Minute[], before = YESTERDAY) =>
  assert.equal(difference(await stored(sql), foldedAtOnce(minutes, before)), null)
/** The rows of a container in compute_folded, as an earlier release would have left them. */
const rolledUpBefore = (secs: number) => sql`
  update compute_fold set folded_until = to_timestamp(${secs}::float8) at time zone 'utc',
                          closed_until = to_timestamp(${secs}::float8) at time zone 'utc'`

test('the job runs at the configured interval, first after 90 seconds, after compute-retention in its chain, and never with 0 days', () => {
  assert.equal(computeFold.firstAfterSecs, 90)
  assert.equal(computeFold.everySecs({ ...config, computeRetentionIntervalSecs: 77 }), 77)
  assert.equal(computeFold.everySecs({ ...config, computeHistoryRetentionDays: 0 }), null)
  assert.deepEqual(
    chains.filter((chain) => chain.includes(computeFold)),
    [[computeRetention, computeFold]],
  )
})

describe('packing and rollup', () => {
  test('full hours are packed an hour later; after 24 hours their minutes become one row for each five minutes', async () => {
    const start = YESTERDAY - 2 * HOUR
    const minutes = [
      ...at(
        start,
        start + 60,
        start + 299,
        start + 300,
        YESTERDAY - 1,
        YESTERDAY,
        NOW - HOUR - 1,
        NOW - HOUR,
        NOW - 60,
      ),
      { container: 2, at: start + 30, values: plain(5) },
    ]
    await post(sql, minutes)
    assert.equal(await count(), 8)
    const pass = await run()
    assert.deepEqual([pass.outcome, pass.rows], ['done', 8])
    await assertFolded(minutes)
    assert.deepEqual(await forms(sql), { rows: 2, packed: 2, folded: 4 })
    assert.equal(await minutesRead(sql), minutes.length)
    assert.equal(await count(), 0)
    assert.equal((await run()).rows, 0)
    await assertFolded(minutes)
  })

  test('minutes of the last hour stay rows after the clock of the database was set back', async () => {
    // These minutes were counted while the clock was a day ahead.
    await sql`
      update compute_fold set counted_until = to_timestamp(${NOW + DAY}::float8) at time zone 'utc',
                              count_closed_until = to_timestamp(${NOW + DAY}::float8) at time zone 'utc'`
    await post(sql, at(NOW - HOUR - 1, NOW - 60, NOW))
    assert.equal(await count(), 1)
    assert.equal((await run()).rows, 1)
    assert.deepEqual(await forms(sql), { rows: 2, packed: 1, folded: 0 })
  })

  test('packed minutes are rolled up once they are old enough, to the same rows', async () => {
    const minutes = [0, 60, 200, 300, 3_000].flatMap((secs) => [
      { container: 1, at: YESTERDAY - HOUR + secs, values: { ...plain(secs), ...runq(secs, [secs, 1]) } },
      { container: 2, at: YESTERDAY - HOUR + secs, secs: 30, values: plain(2 * secs) },
      { container: 2, at: YESTERDAY - HOUR + secs, values: plain(3 * secs) },
    ])
    await post(sql, minutes)
    assert.equal((await run(withHours(48))).rows, minutes.length)
    assert.deepEqual(await forms(sql), { rows: 0, packed: minutes.length, folded: 0 })
    assert.equal(await count(), minutes.length)
    assert.equal((await run()).rows, minutes.length)
    await assertFolded(minutes)
    assert.deepEqual(await forms(sql), { rows: 0, packed: 0, folded: 6 })
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
    const [row, other] = await foldedRows(sql)
    assert.deepEqual(
      [
        row!.cpu_usage_millis_avg,
        row!.cpu_usage_millis_max,
        row!.cpu_usage_millis_last,
        row!.cpu_quota_usec,
        row!.mem_current_avg,
      ],
      [String((600 + 100 + 201) / 3), '4000', '50', null, '300'],
    )
    assert.deepEqual(
      [row!.mem_events_max, row!.runq_count, row!.runq_p99_us, row!.runq_hist],
      ['901', '80', '50', '[4,2,7]'],
    )
    assert.deepEqual([other!.runq_count, other!.runq_hist], ['0', null], 'a run queue is unknown only where all are')
  })

  test('extreme values do not stop a rollup: sums are capped at the largest bigint, and means stay within bounds', async () => {
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
    const rows = await foldedRows(sql)
    assert.deepEqual(
      rows.map(({ cpu_usage_millis_avg: mean, mem_refault }) => [
        Number(mean) > 0 && Number(mean) <= 1e100,
        mem_refault,
      ]),
      [
        [true, most],
        [false, '3'],
      ],
    )
    assert.equal(rows[0]!.mem_current_avg, most)
    assert.equal(rows[1]!.runq_hist, `[${hist.join(',')}]`)
  })

  test('minutes older than the retention are left alone; late ones are packed, once the retention is longer', async () => {
    const old = NOW - 9 * DAY
    await post(sql, at(old, YESTERDAY - HOUR))
    assert.equal(await count(), 1)
    assert.equal((await run()).rows, 1)
    await assertFolded(at(YESTERDAY - HOUR))
    await post(sql, at(old + 1))
    assert.equal((await run()).rows, 0)
    assert.equal((await run(withHours(24, { computeHistoryRetentionDays: 30 }))).rows, 2)
    await assertFolded(at(old, old + 1, YESTERDAY - HOUR))
  })

  test('a posted five-minute row counts as one minute, and its values as the newest; others stay as they are', async () => {
    const start = YESTERDAY - HOUR
    await postFolded(sql, [
      { container: 1, at: start, values: { ...plain(9), ...runq(5, [1, 1]) } },
      { container: 1, at: start + 7, values: plain(8) },
      { container: 2, at: start, secs: 600 },
    ])
    const posted = await foldedRows(sql)
    await post(sql, [
      { container: 1, at: start + 60, values: { ...plain(3), ...runq(7, [1]) } },
      { container: 1, at: start + 120, values: plain(0) },
      { container: 2, at: start },
    ])
    await run()
    const rows = await foldedRows(sql)
    const row = rows.find(({ container_id, id }) => container_id === '1' && id === posted[0]!.id)
    assert.deepEqual(
      [
        row!.cpu_usage_millis_avg,
        row!.mem_current_avg,
        row!.cpu_usage_millis_last,
        row!.cpu_quota_usec,
        row!.mem_refault,
        row!.runq_p99_us,
        row!.runq_hist,
      ],
      ['4', '4', '9', '9', '12', '7', '[2,1]'],
    )
    assert.equal(rows.length, 4, 'rows of other times and lengths are other rows')
    assert.deepEqual(
      (await sql`select ts::text, resolution_secs::int as secs from compute_folded order by container_id`).map(
        ({ secs }) => secs,
      ),
      [300, 600],
    )
  })

  test('more containers than a statement reads, each with several hours, are packed in one pass', async () => {
    await sql`insert into compute_container overriding system value
      select n, 'more-' || n, 'pod-' || n, 'ns', 'pod', 'app', 'node' from generate_series(1000, 1120) n`
    const minutes = Array.from({ length: 121 }, (_, n) =>
      [3, 4, 30].map((hours) => ({ container: 1_000 + n, at: NOW - hours * HOUR, values: plain(n) })),
    ).flat()
    await post(sql, minutes)
    assert.deepEqual([(await run()).rows, await forms(sql)], [363, { rows: 0, packed: 242, folded: 121 }])
    await assertFolded(minutes)
  })

  test('minutes of one second are packed a few containers at a time', async () => {
    await post(
      sql,
      [1, 2, 3, 4].map((container) => ({ container, at: NOW - 3 * HOUR, secs: 1 })),
    )
    const names = Object.keys(plain(1)).join(', ')
    await sql.unsafe(`
      insert into compute_minute (container_id, ts, resolution_secs, ${names})
      select m.container_id, m.ts + n * interval '1 second', 1, ${names}
      from compute_minute m cross join generate_series(1, ${HOUR - 1}) n`)
    const { db } = scene.context()
    const sizes: number[] = []
    const job = async (statement: never) => {
      const rows = (await db.job(statement)) as unknown as { kind?: string }[]
      const hours = rows.filter(({ kind }) => kind === 'hour').length
      if (hours > 0) sizes.push(hours)
      return rows
    }
    const pass = await run({ db: { job } as unknown as Database })
    assert.deepEqual([pass.outcome, pass.rows, sizes], ['done', 4 * HOUR, [3, 1]])
  })

  test('nothing is packed while a replica of the release before may run', async () => {
    await sql`update compute_fold set pack_after = (now() + interval '1 minute') at time zone 'utc'`
    await post(sql, at(YESTERDAY - HOUR))
    assert.deepEqual([await count(), (await run()).rows, await forms(sql)], [0, 0, { rows: 1, packed: 0, folded: 0 }])
  })

  test('minutes that an earlier release rolled up count once; late ones are merged into its rows', async () => {
    const start = YESTERDAY - 2 * HOUR
    await post(sql, at(start + 60, YESTERDAY + HOUR))
    await postFolded(sql, [{ container: 1, at: start, values: plain((start + 60) % 97) }])
    await sql`update compute_folded set newest_ts = ts + interval '1 minute'`
    await rolledUpBefore(YESTERDAY)
    assert.deepEqual([await minutesRead(sql), await count()], [2, 1])
    await post(sql, at(start + 120))
    assert.deepEqual([await minutesRead(sql), await count()], [3, 2])
    assert.equal((await run()).rows, 2)
    await assertFolded(at(start + 60, start + 120))
    assert.equal(await minutesRead(sql), 3)
    assert.equal((await sql`select from compute_folded`).length, 0, 'the row is packed')
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
    const [before] = await foldedRows(sql)
    const late: Minute[] = [
      { container: 1, at: start, values: { ...plain(1), ...runq(1, [1, 1, 1]) } },
      { container: 1, at: start + 240, values: { ...plain(8), mem_limit: null } },
      { container: 2, at: start + HOUR, values: plain(6) },
    ]
    await post(sql, late)
    assert.deepEqual(await forms(sql), { rows: 3, packed: 0, folded: 1 })
    assert.equal(await minutesRead(sql), 5)
    await assertFolded(first)
    assert.equal(await count(), 3)
    assert.equal((await run()).rows, 3)
    await assertFolded([...first, ...late])
    assert.equal((await foldedRows(sql))[0]!.id, before!.id, 'the row keeps its id')
  })

  test('a late minute of a packed hour is added to the pack', async () => {
    const minutes = at(NOW - 3 * HOUR, NOW - 3 * HOUR + 120)
    await post(sql, minutes)
    await run()
    const late = [...at(NOW - 3 * HOUR + 60), { container: 1, at: NOW - 3 * HOUR + 60, secs: 30, values: plain(3) }]
    await post(sql, late)
    assert.deepEqual(await forms(sql), { rows: 2, packed: 2, folded: 0 })
    assert.equal((await run()).rows, 2)
    assert.deepEqual(await forms(sql), { rows: 0, packed: 4, folded: 0 })
    await run(withHours(2))
    await assertFolded([...minutes, ...late], NOW - 2 * HOUR)
  })

  test('minutes that are in a pack already are dropped, in whatever form their hour is', async () => {
    const minutes = at(YESTERDAY - HOUR, YESTERDAY - HOUR + 60, NOW - 3 * HOUR, NOW - 3 * HOUR + 60)
    await post(sql, minutes)
    await run()
    const packed = await forms(sql)
    // Posts recognise them; here they are stored all the same, as by a post that began before they were packed.
    const again = async () => {
      await sql`insert into compute_minute (${sql(Object.keys(plain(1)))}, container_id, ts, resolution_secs)
        select ${sql(Object.keys(plain(1)))}, 1, to_timestamp(s) at time zone 'utc', 60
        from json_populate_record(null::compute_minute, ${JSON.stringify(plain(90))}::text::json), unnest(string_to_array(${minutes.map(({ at }) => at).join()}, ',')::float8[]) s`
      assert.equal((await run()).rows, 4)
    }
    await again()
    assert.deepEqual(await forms(sql), packed)
    await assertFolded(minutes)
    await run(withHours(2))
    await again()
    await assertFolded(minutes, NOW - 2 * HOUR)
  })

  test('a pack that a read missed stays as it is, and so does an hour that got minutes since it was read', async () => {
    const first = at(NOW - 3 * HOUR, NOW - 3 * HOUR + 60)
    await post(sql, first)
    await run()
    await post(sql, at(NOW - 3 * HOUR + 120))
    const { db } = scene.context()
    const missing = async (statement: never) => {
      const rows = (await db.job(statement)) as unknown as { kind?: string }[]
      return rows.filter(({ kind }) => kind !== 'minute pack')
    }
    await run({ ...abortedAfter(12, { job: missing } as unknown as Database) })
    assert.deepEqual(await forms(sql), { rows: 1, packed: 2, folded: 0 })
    let isLate = true
    const late = async (statement: never) => {
      const rows = (await db.job(statement)) as unknown as { kind?: string }[]
      if (isLate && rows.some(({ kind }) => kind === 'hour')) {
        isLate = false
        await post(sql, at(NOW - 3 * HOUR + 180))
      }
      return rows
    }
    assert.equal((await run({ db: { job: late } as unknown as Database })).rows, 2)
    assert.equal(isLate, false)
    assert.deepEqual(await forms(sql), { rows: 0, packed: 4, folded: 0 })
  })

  test('a pack that cannot be read stays, with its later hours; other containers are packed', async () => {
    const hours = [NOW - 4 * HOUR, NOW - 3 * HOUR]
    const minutes = (container: number) => hours.flatMap((hour) => at(hour)).map((one) => ({ ...one, container }))
    await post(sql, minutes(1))
    await run()
    await sql`update compute_minute_pack set data = '\xffff' where ts = (select min(ts) from compute_minute_pack)`
    await post(sql, at(...hours.map((hour) => hour + 60)))
    await post(sql, minutes(2))
    logged.length = 0
    assert.equal((await run()).rows, 2)
    assert.deepEqual(await forms(sql), { rows: 2, packed: 4, folded: 0 })
    const errors = logged.filter(({ level }) => level === 50)
    assert.deepEqual(
      errors.map(({ msg, container }) => [msg, container]),
      [['a pack of history cannot be read: this hour of the container, and later ones, are not packed', '1']],
    )
    logged.length = 0
  })

  test('a pass waits for open posts before it packs their minutes', async () => {
    const start = YESTERDAY - HOUR
    let pass: Promise<unknown> | undefined
    await post(sql, at(start), async () => {
      pass = run()
      await until('the pass waits', async () => (await waiting(sql)) > 0)
    })
    await pass
    await assertFolded(at(start))
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
  { weight: 1, arbitrary: fc.integer({ min: 24, max: 32 }) },
)

test('posts and folds in any order give the same rows as folding all minutes at once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
      await emptyHistory(sql)
      await makeContainers(sql)
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
    await run(abortedAfter(4, scene.db))
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

  test('a statement that is too slow is tried again with fewer containers', async () => {
    const minutes = at(YESTERDAY - HOUR, YESTERDAY - 1800)
    await post(sql, minutes)
    const { db } = scene.context()
    const tried: unknown[] = []
    const job = async (statement: (sql: unknown) => PromiseLike<unknown>) => {
      const values: unknown[] = []
      statement(Object.assign((_: unknown, ...more: unknown[]) => void values.push(...more), { unsafe: () => null }))
      if (values.includes('0') && values.includes(50) && tried.push(50) < 3) throw new DatabaseBusy('too slow', '57014')
      return db.job(statement as never)
    }
    assert.equal((await run({ db: { job } as unknown as Database })).rows, 2)
    assert.deepEqual(tried, [50])
  })
})

test('minutes to count are found by the BRIN index on their time, and none by a sequential scan', async () => {
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
    assert.equal(since.compute_minute_other, 0)
    assert.ok(since.compute_minute_other_ts_idx1! > 0)
    assert.ok((await tx`select from compute_folded_pack`).length > 0)
  })
})
