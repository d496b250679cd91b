import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { computeFold } from '../../jobs/compute-fold.ts'
import { computeRetention } from '../../jobs/compute-retention.ts'
import { type Database, DatabaseBusy } from '../../lib/db/index.ts'
import { until } from '../support/until.ts'
import { emptyHistory, makeContainers, minutesRead, post, postFolded } from './compute-minutes.ts'
import { abortedAfter, inside, startScene, waiting } from './scene.ts'

const DAY = 86_400
const BATCH_ROWS = 100
const scene = await startScene(computeRetention, { auditRetentionBatchSize: BATCH_ROWS })
const { run, count, sql, ago, logged } = scene
const { config } = scene.context()
const TABLES = ['compute_minute', 'compute_folded', 'compute_contention'] as const
/** With those that only compute-fold writes. */
const ALL_TABLES = [
  ...TABLES,
  ...(['compute_minute_pack', 'compute_folded_pack', 'compute_contention_kept', 'compute_usage'] as const),
] as const
type Table = (typeof ALL_TABLES)[number]

const [clock] = await sql<
  { secs: number }[]
>`select extract(epoch from date_trunc('day', now() at time zone 'utc'))::float8 as secs`
/** Noon, `days` days from today, the day on which the file started: the tests also pass at midnight. */
const noon = (days: number) => clock!.secs + days * DAY + DAY / 2
const dayOf = (days: number) => new Date(noon(days) * 1000).toISOString().slice(0, 10).replaceAll('-', '')

beforeEach(async () => {
  await emptyHistory(sql)
  await sql`truncate compute_latest, compute_node`
  for (const table of ALL_TABLES) for (const day of await daysOf(table)) await sql.unsafe(`drop table ${table}_${day}`)
  logged.length = 0
})

const withDays = (computeHistoryRetentionDays: number, more: Partial<typeof config> = {}) => ({
  config: { ...config, computeHistoryRetentionDays, ...more },
})
async function daysOf(table: Table): Promise<string[]> {
  const rows = await sql<
    { day: string }[]
  >`select to_char(day, 'YYYYMMDD') as day from compute_days(${table}) order by day`
  return rows.map(({ day }) => day)
}
const ahead = () => [dayOf(0), dayOf(1)]
const rowsOf = async (table: string) => (await sql.unsafe(`select from ${table}`)).length
/** Stores a pair of victim and culprit at noon, `days` days from today. */
const pair = (days: number, victim = 1) => sql`
  insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, count, wait_ns)
  values (${victim}, to_timestamp(${noon(days)}::float8) at time zone 'utc', 'system', 'x', 1, 1)`
const warnings = () => logged.filter(({ level }) => level === 40).map(({ msg }) => msg)

/** Stores samples of containers, each with its age in seconds. */
const sampled = async (ages: Record<string, number>) => {
  for (const [uid, secs] of Object.entries(ages)) {
    await sql`
      insert into compute_latest select (json_populate_record(null::compute_latest, t.empty::json)).* from (
        select json_object_agg(a.attname, case when a.attname = 'container_uid' then to_json(${uid}::text)
                                               when t.typname = 'timestamp' then to_json(${ago(secs)}::text)
                                               when t.typname = 'text' then to_json('x'::text) else to_json(1) end)::text as empty
        from pg_attribute a join pg_type t on t.oid = a.atttypid
        where a.attrelid = 'compute_latest'::regclass and a.attnum > 0 and not a.attisdropped) t`
  }
}
const beaten = async (ages: Record<string, number>) => {
  for (const [node, secs] of Object.entries(ages)) {
    await sql`
      insert into compute_node values
        (${node}, now(), 1, 1, true, true, true, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, null, null, ${ago(secs)}::text::timestamp)`
  }
}
const uids = async () =>
  (await sql<{ uid: string }[]>`select container_uid as uid from compute_latest order by 1`).map(({ uid }) => uid)
const nodes = async () =>
  (await sql<{ node: string }[]>`select node from compute_node order by 1`).map(({ node }) => node)

test('the job runs at the configured interval, first after 90 seconds, also with 0 days', () => {
  assert.equal(computeRetention.firstAfterSecs, 90)
  assert.equal(
    computeRetention.everySecs({ ...config, computeRetentionIntervalSecs: 77, computeHistoryRetentionDays: 0 }),
    77,
  )
})

describe('samples and heartbeats', () => {
  test('samples older than 600 seconds and heartbeats older than 3 600 are deleted, also with history off', async () => {
    for (const days of [0, 7]) {
      await sampled({ old: 700, other: 601, young: 500 })
      await beaten({ gone: 3_700, here: 3_300 })
      assert.equal(await count(withDays(days)), 3)
      assert.ok((await run(withDays(days))).rows >= 3)
      assert.deepEqual([await uids(), await nodes()], [['young'], ['here']])
      assert.equal(await count(withDays(days)), 0)
      await sql`truncate compute_latest, compute_node`
    }
  })

  test('a heartbeat exactly 3 600 seconds old stays, one a millisecond older is deleted', async () => {
    await sql.begin(async (tx) => {
      await tx`
        insert into compute_node
        select n, now(), 1, 1, true, true, true, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, null, null, now() at time zone 'utc' - s * interval '1 ms'
        from (values ('kept', 3600000), ('gone', 3600001)) v(n, s)`
      await run({ db: inside(tx), ...withDays(0) })
      assert.deepEqual([...(await tx`select node from compute_node`)], [{ node: 'kept' }])
    })
  })

  test('samples are deleted in batches of the configured size', async () => {
    await sampled({ old: 700, young: 1 })
    await sql`
      insert into compute_latest
      select (jsonb_populate_record(l, jsonb_build_object('container_uid', 'old-' || n))).*
      from compute_latest l cross join generate_series(1, ${2 * BATCH_ROWS}::int) n where l.container_uid = 'old'`
    const pass = await run(withDays(0))
    assert.deepEqual([pass.rows, pass.batches], [2 * BATCH_ROWS + 1, 4])
    assert.deepEqual(await uids(), ['young'])
  })

  test('a sample that is being written is skipped, and one that was updated after the pass found it stays', async () => {
    await sampled({ written: 700, other: 700 })
    await sql.begin(async (tx) => {
      await tx`select from compute_latest where container_uid = 'written' for update`
      assert.equal((await run(withDays(0))).rows, 1)
    })
    assert.deepEqual(await uids(), ['written'])
    await scene.whileDeleting(
      'compute_latest',
      'before',
      () => sql`update compute_latest set updated_at = ${ago(0)}::text::timestamp`,
    )
    assert.deepEqual(await uids(), ['written'])
  })
})

describe('daily partitions', () => {
  test('the first pass creates the partitions of today and tomorrow, the second changes nothing', async () => {
    const pass = await run()
    assert.deepEqual([pass.outcome, pass.rows], ['done', 14])
    for (const table of ALL_TABLES) assert.deepEqual(await daysOf(table), ahead())
    assert.equal((await run()).rows, 0)
  })

  test('with 0 days of history no partition is created or dropped', async () => {
    await post(sql, [{ container: 1, at: noon(-100) }])
    await run()
    await post(sql, [{ container: 1, at: noon(-200) }])
    const before = await daysOf('compute_minute')
    assert.equal((await run(withDays(0))).rows, 0)
    assert.deepEqual([await daysOf('compute_minute'), await rowsOf('compute_minute')], [before, 1])
    await sql`truncate compute_minute`
    for (const table of TABLES) for (const day of await daysOf(table)) await sql.unsafe(`drop table ${table}_${day}`)
    await run(withDays(0))
    for (const table of TABLES) assert.deepEqual(await daysOf(table), [])
  })

  test('rows stored before their partition existed move into it, and those past the retention are deleted', async () => {
    await post(
      sql,
      [-9, -7, -2, 0].map((days) => ({ container: 1, at: noon(days) })),
    )
    await postFolded(
      sql,
      [-9, -7, 0].map((days) => ({ container: 1, at: noon(days) })),
    )
    for (const days of [-9, -7, 0]) await pair(days)
    const ids = await sql`select id from compute_folded order by id`
    const kept = [dayOf(-7), ...ahead()]
    assert.equal((await run()).outcome, 'done')
    assert.deepEqual(await daysOf('compute_minute'), [dayOf(-7), dayOf(-2), ...ahead()])
    assert.deepEqual([await daysOf('compute_folded'), await daysOf('compute_contention')], [kept, kept])
    for (const table of TABLES) assert.equal(await rowsOf(`${table}_other`), 0)
    for (const [table, rows] of [
      ['compute_minute', 3],
      ['compute_folded', 2],
      ['compute_contention', 2],
    ] as const)
      assert.equal(await rowsOf(table), rows)
    assert.deepEqual(
      [...(await sql`select id from compute_folded order by id`)],
      [...ids].slice(1),
      'they keep their ids',
    )
    await post(sql, [
      { container: 1, at: noon(0) },
      { container: 1, at: noon(1) },
    ])
    assert.equal(await rowsOf('compute_minute'), 4, 'what is known is known in its day')
    assert.equal(await rowsOf('compute_minute_other'), 0)
  })

  test('a partition has the indexes and checks of its table', async () => {
    await run()
    const shape = (name: string) => sql`
      select regexp_replace(indexdef, '^.* USING', '') as def from pg_indexes where tablename = ${name} order by 1`
    for (const table of TABLES) assert.deepEqual(await shape(`${table}_${dayOf(0)}`), await shape(`${table}_other`))
    await assert.rejects(postFolded(sql, [{ container: 1, at: noon(0), secs: 0 }]), /resolution_secs_check/)
  })

  test('rows beyond the limit of a statement stay in the default partition for later statements', async () => {
    await post(
      sql,
      [-3, -3, -2, 0].map((days, i) => ({ container: i, at: noon(days) })),
    )
    const make = async (most: number) => {
      const [row] =
        await sql`select made, moved::int, waiting from compute_make_days('compute_minute', '2020-01-01', ${most})`
      return [row!.made, row!.moved, row!.waiting]
    }
    assert.deepEqual(await make(1), [2, 1, 2])
    assert.deepEqual(await make(1), [1, 1, 1])
    assert.deepEqual(await make(1), [0, 0, 1])
    assert.deepEqual(await make(2), [1, 2, 0])
    assert.equal(await minutesRead(sql), 4)
  })

  test('a day whose rows take too long to move stays in the default partition, and the other steps run', async () => {
    await run()
    await post(
      sql,
      [-3, -3, -2].map((days, i) => ({ container: i, at: noon(days) })),
    )
    await sampled({ old: 700 })
    const { db } = scene.context()
    const job = async (statement: (sql: unknown) => PromiseLike<unknown>) => {
      const values: unknown[] = []
      statement(Object.assign((_: unknown, ...more: unknown[]) => void values.push(...more), { unsafe: () => null }))
      // The last value is how many rows are moved.
      if (values.includes('compute_minute') && Number(values.at(-1)) > 1_000)
        throw new DatabaseBusy('too slow', '57014')
      return db.job(statement as never)
    }
    assert.equal((await run({ db: { job } as unknown as Database })).outcome, 'done')
    assert.deepEqual(await uids(), [])
    assert.deepEqual(await daysOf('compute_minute'), [dayOf(-3), dayOf(-2), ...ahead()])
  })

  test('concurrent sessions create each partition once and lose no row', async (t) => {
    await post(
      sql,
      [-2, -1, 0].map((days) => ({ container: 1, at: noon(days) })),
    )
    const make = (on: typeof sql) => on`select made from compute_make_days('compute_minute', '2020-01-01', 1000)`
    const all = await Promise.all([make(sql), make(sql), make(sql)])
    assert.equal(
      all.reduce((sum, [row]) => sum + row!.made, 0),
      4,
    )
    const other = scene.otherProcess(t)
    await Promise.all([run(), run({ db: other })])
    assert.equal(await minutesRead(sql), 3)
  })

  test('a pass waits for an open post before it creates partitions, and posts are not refused', async () => {
    let pass: Promise<unknown> | undefined
    await post(sql, [{ container: 1, at: noon(0) }], async () => {
      pass = run()
      await until('the pass waits', async () => (await waiting(sql)) > 0)
    })
    const later = post(sql, [{ container: 2, at: noon(0) }])
    await Promise.all([pass, later])
    assert.deepEqual(await daysOf('compute_minute'), ahead())
    assert.deepEqual([await rowsOf('compute_minute_other'), await rowsOf('compute_minute')], [0, 2])
  })

  test('a read that begins while rows move into their partition has them all', async () => {
    for (const table of ['compute_minute', 'compute_folded'] as const) {
      const store = table === 'compute_minute' ? post : postFolded
      await store(
        sql,
        [-2, 0].map((days) => ({ container: 1, at: noon(days) })),
      )
      let read: Promise<number> | undefined
      await sql.begin(async (tx) => {
        const [days] = await tx`select moved::int from compute_make_days(${table}, '2020-01-01', 1000)`
        assert.equal(days!.moved, 2)
        read = rowsOf(table)
        await until('the read waits', async () => (await waiting(sql)) > 0)
      })
      assert.equal(await read, 2)
    }
  })

  test('a pass that cannot lock a table within two seconds leaves it to the next pass, with a warning', async () => {
    await sql.begin(async (tx) => {
      await tx`select from compute_minute_pack_other`
      assert.equal((await run(abortedAfter(2, scene.db))).rows, 2)
    })
    assert.deepEqual(warnings(), ['another session holds the table: the next pass creates its partitions'])
    assert.deepEqual([await daysOf('compute_minute'), await daysOf('compute_minute_pack')], [ahead(), []])
    assert.equal((await run()).rows, 12)
  })

  test('a pass creates no partition during a fold, with a warning for each table', async () => {
    await sql.begin(async (tx) => {
      await tx`select from compute_fold for update`
      assert.equal((await run()).rows, 0)
    })
    assert.equal(warnings().length, 7)
  })
})

describe('expired history', () => {
  /** Stores a row of each table on each of these days, and runs a pass that creates their partitions. */
  const made = async (...days: number[]) => {
    await makeContainers(sql, 1, 1)
    await post(
      sql,
      days.map((day) => ({ container: 1, at: noon(day) })),
    )
    await postFolded(
      sql,
      days.map((day) => ({ container: 1, at: noon(day) })),
    )
    for (const day of days) await pair(day)
    await run(withDays(90))
  }

  test('partitions past the retention are dropped, folded or not', async () => {
    await made(-8, -7, -1)
    assert.equal(await count(withDays(90)), 0)
    assert.equal((await run(withDays(7))).rows, 3)
    for (const table of TABLES) assert.deepEqual(await daysOf(table), [dayOf(-7), dayOf(-1), ...ahead()])
    assert.equal((await run(withDays(1))).rows, 3)
    for (const table of TABLES) assert.equal(await rowsOf(table), 1)
  })

  test('a partition of minutes is dropped when all its minutes are folded and none is late', async () => {
    await made(-3, -2)
    const fold = () => computeFold.run(scene.context(withDays(90)))
    await fold()
    await post(sql, [{ container: 1, at: noon(-3) + 60 }])
    assert.equal(
      (await run(withDays(90))).rows,
      1 + 2 + 3 * 4,
      'days of minutes and waits go; two days of usage, packs and kept waits are made, with a row each',
    )
    assert.deepEqual(await daysOf('compute_minute'), [dayOf(-3), ...ahead()])
    assert.equal(await minutesRead(sql), 5, 'the late one, two folded, two that were posted so')
    await fold()
    assert.equal((await run(withDays(90))).rows, 1)
    assert.deepEqual(await daysOf('compute_minute'), ahead())
    assert.deepEqual([await minutesRead(sql), (await daysOf('compute_folded')).length], [5, 4])
  })

  test('a partition of minutes that are rolled up but not counted stays', async () => {
    await made(-3)
    await computeFold.run(scene.context(withDays(90)))
    await sql`update compute_fold set counted_until = ${ago(5 * DAY)}::text::timestamp`
    await run(withDays(90))
    assert.ok((await daysOf('compute_minute')).includes(dayOf(-3)))
    await computeFold.run(scene.context(withDays(90)))
    await run(withDays(90))
    assert.deepEqual(await daysOf('compute_minute'), ahead())
  })

  test('a late minute that is posted before the drop keeps its partition', async () => {
    await made(-3)
    await computeFold.run(scene.context(withDays(90)))
    let pass: Promise<unknown> | undefined
    await post(sql, [{ container: 1, at: noon(-3) + 60 }], async () => {
      pass = run(withDays(90))
      await until('the pass waits', async () => (await waiting(sql)) > 0)
    })
    await pass
    assert.ok((await daysOf('compute_minute')).includes(dayOf(-3)))
    assert.equal(await minutesRead(sql), 3)
  })

  test('minutes of the default partition are deleted by the same rules, late ones stay', async () => {
    await run()
    const line = ago(2 * DAY)
    await sql`
      update compute_fold set folded_until = ${line}::text::timestamp, closed_until = ${line}::text::timestamp,
                              counted_until = ${line}::text::timestamp, count_closed_until = ${line}::text::timestamp`
    await post(
      sql,
      [-9, -4, -4].map((day, i) => ({ container: i, at: noon(day) })),
    )
    await sql`update compute_minute set is_late = false where container_id = 1`
    assert.equal(await count(), 2)
    const pass = await run()
    assert.deepEqual([pass.rows, await rowsOf('compute_minute_other')], [2, 1])
    assert.deepEqual(
      [...(await sql`select container_id::int as id, is_late from compute_minute`)],
      [{ id: 2, is_late: true }],
    )
    assert.deepEqual(await daysOf('compute_minute'), ahead(), 'no day is made of it')
  })

  test('rows of the default partition past the retention are all deleted, though they exceed a batch', async () => {
    await run()
    await sql`
      insert into compute_contention_other (victim_id, ts, culprit_kind, culprit_ref, count, wait_ns)
      select 1, to_timestamp(${noon(-9)}::float8) at time zone 'utc', 'system', 'x', 1, 1 from generate_series(1, ${3 * BATCH_ROWS - 1}::int)`
    assert.equal((await run()).rows, 3 * BATCH_ROWS - 1)
    assert.equal(await rowsOf('compute_contention'), 0)
  })
})

describe('containers', () => {
  const known = (...names: string[]) => sql`
    insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
    select n, 'pod', 'ns', 'p', 'c', 'node' from unnest(string_to_array(${names.join()}, ',')) n returning id::int as id, container_uid as uid`
  const left = async () =>
    (await sql<{ uid: string }[]>`select container_uid as uid from compute_container order by 1`).map(({ uid }) => uid)

  test('containers without history and without a sample are deleted', async () => {
    const ids = Object.fromEntries(
      (await known('minute', 'folded', 'pair', 'sample', 'nothing')).map(({ uid, id }) => [uid, id]),
    )
    await post(sql, [{ container: ids.minute, at: noon(0) }])
    await postFolded(sql, [{ container: ids.folded, at: noon(0) }])
    await pair(0, ids.pair)
    await sampled({ sample: 1 })
    assert.equal(await count(), 1)
    await run()
    assert.deepEqual(await left(), ['folded', 'minute', 'pair', 'sample'])
    await sql`truncate compute_minute, compute_folded, compute_contention, compute_latest`
    assert.equal((await run(withDays(0))).rows, 0)
    assert.equal((await run()).rows, 4)
  })

  test('a container whose first minute is being posted stays', async () => {
    const [row] = await known('new')
    await run()
    const [again] = await known('new')
    assert.notEqual(row!.id, again!.id)
    let pass: Promise<unknown> | undefined
    await post(sql, [{ container: again!.id, at: noon(0) }], async () => {
      pass = run()
      await until('the pass waits', async () => (await waiting(sql)) > 0)
    })
    await pass
    assert.deepEqual(await left(), ['new'])
  })

  test('containers are deleted a few at a time, and in the end all unused ones', async () => {
    await known(...Array.from({ length: 30 }, (_, n) => `c-${n}`))
    await sampled({ 'c-3': 1 })
    const forget = async (after: string) => {
      const [row] =
        await sql`select forgotten::int, last_id::text as last from compute_delete_unused(${after}::text::bigint, 12, 5)`
      return [row!.forgotten, row!.last] as [number, string | null]
    }
    const all: number[] = []
    for (let after: string | null = '0'; after !== null; ) {
      const [rows, last]: [number, string | null] = await forget(after)
      all.push(rows)
      after = last
    }
    assert.equal(
      all.reduce((sum, rows) => sum + rows),
      29,
    )
    assert.ok(Math.max(...all) <= 5)
    assert.deepEqual(await left(), ['c-3'])
  })
})

describe('passes', () => {
  test('with the lock held elsewhere a pass reports skipped and does nothing', async () => {
    await beaten({ gone: 9_000 })
    await scene.whileLocked('compute-retention', async () => {
      assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 })
    })
    assert.deepEqual([await nodes(), await daysOf('compute_minute')], [['gone'], []])
  })

  test('an aborted pass leaves the rest to the next', async () => {
    await beaten({ gone: 9_000 })
    assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: 2, batches: 1 })
    assert.deepEqual(await nodes(), ['gone'])
    assert.equal((await run()).outcome, 'done')
    assert.deepEqual(await nodes(), [])
  })
})
