import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { parseHeartbeats } from '../../lib/runtime/coverage/index.ts'
import { byLabel } from '../seccomp/drains.ts'
import { startApp, TOKENS } from '../support/app.ts'
import {
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  BAD_TIMES,
  GOOD_TIMES,
  refusedBodies,
  whileLocked,
} from '../support/routes.ts'
import { containerId, digest, type Fields, HOUR, heartbeat, inSecs, only, PATH, stored, take } from './heartbeats.ts'

const guarded = await startApp(TOKENS)

const MAX_COUNT = 1_000_000_000_000
const MAX_BYTES = 4 * 1024 * 1024
const app = await startApp({}, guarded)
const { sql } = app

beforeEach(() => sql`truncate runtime_coverage`)

const rejected = async () => (await byLabel(app.deps.metrics.rejectedEntries))[PATH] ?? 0
const isNow = (time: unknown) => assert.ok(Math.abs(Date.parse(`${time}Z`) - Date.now()) < 60_000, String(time))
/** Times as the database shows them: without trailing zeros in the fraction. */
const shown = (time: string) => time.replace(/\.?0+$/, (zeros) => (time.includes('.') ? '' : zeros))
const sameTime = (found: unknown, sent: unknown) => assert.equal(shown(String(found)), shown(String(sent)))
/** Posts heartbeats of one container one after the other; `hours` is the age of each. */
const history = async (...beats: [hours: number, fields?: Fields][]) => {
  const base = Date.now()
  const at = (hours: number) => new Date(base - hours * HOUR * 1_000).toISOString().slice(0, -1)
  const one = heartbeat({ heartbeat_secs: 86_400, tracking_since: at(1_000) })
  for (const [hours, fields] of beats) await take(app, [{ ...one, heartbeat_at: at(hours), ...fields }])
  return { row: await only(sql), at }
}

test('POST /runtime/coverage 200: a row has everything that was sent', async () => {
  const sent = heartbeat({ probe_attached_at: inSecs(-49 * HOUR), unsent: 3 })
  assert.deepEqual(await take(app, [sent]), { accepted: 1, dropped: 0, written: 1 })
  const { heartbeat_at, events_dropped, tracking_since, probe_attached_at, ...same } = sent
  const { covered_since, last_heartbeat, ...row } = await only(sql)
  for (const [key, value] of Object.entries(same)) assert.equal(row[key], value, key)
  for (const time of [row.tracking_since, covered_since]) sameTime(time, tracking_since)
  sameTime(row.probe_attached_at, probe_attached_at)
  sameTime(last_heartbeat, heartbeat_at)
  assert.deepEqual(
    [row.cluster_id, row.gaps, row.last_gap, row.events_dropped, row.last_drop_at],
    ['primary', 0, null, events_dropped, null],
  )
})

test('POST /runtime/coverage 200: an optional field that is absent or null has its default', async () => {
  for (const nothing of [undefined, null]) {
    await sql`truncate runtime_coverage`
    const absent = {
      image_digest: nothing,
      events_dropped: nothing,
      unsent: nothing,
      incomplete: nothing,
      ended: nothing,
    }
    await take(app, [heartbeat({ ...absent, probe_attached_at: nothing })])
    const { image_digest, events_dropped, unsent, incomplete, ended, probe_attached_at } = await only(sql)
    assert.deepEqual(
      [image_digest, events_dropped, unsent, incomplete, ended, probe_attached_at],
      ['', 0, 0, false, false, null],
    )
  }
})

test('POST /runtime/coverage 200: an empty list is accepted without access to the table', async () => {
  await whileLocked(sql, 'runtime_coverage', async () =>
    assert.deepEqual(await take(app, []), { accepted: 0, dropped: 0, written: 0 }),
  )
})

test('POST /runtime/coverage 200: repeated and older heartbeats change and rewrite nothing', async () => {
  const sent = [heartbeat(), heartbeat({ events_dropped: 5 }), heartbeat({ ended: true })]
  assert.deepEqual(await take(app, sent), { accepted: 3, dropped: 0, written: 3 })
  const versions = () => sql`select xmin, ctid::text, container_id from runtime_coverage order by container_id`
  const [rows, before] = [await stored(sql), [...(await versions())]]
  assert.deepEqual(await take(app, sent), { accepted: 3, dropped: 0, written: 0 })
  const older = sent.map((one) => ({
    ...one,
    heartbeat_at: inSecs(-7),
    events_dropped: 9,
    unsent: 9,
    mode: 'exec',
    incomplete: true,
  }))
  assert.deepEqual(await take(app, older), { accepted: 3, dropped: 0, written: 0 })
  assert.deepEqual([await stored(sql), [...(await versions())]], [rows, before])
})

test('POST /runtime/coverage 200: heartbeats that change nothing take no lock', async () => {
  const [known, ended] = [heartbeat({ heartbeat_at: inSecs(-5) }), heartbeat({ ended: true, heartbeat_at: inSecs(-5) })]
  await take(app, [known, ended])
  await sql.begin(async (held) => {
    await held`select from runtime_coverage for update`
    assert.equal((await take(app, [known, { ...ended, heartbeat_at: inSecs(0) }])).written, 0)
  })
})

test('POST /runtime/coverage 200: a newer heartbeat does not change the pod, workload, container, image or node', async () => {
  const one = heartbeat({ heartbeat_at: inSecs(-100) })
  await take(app, [one])
  const was = await only(sql)
  const other = {
    ...{
      pod_namespace: 'x',
      pod_name: 'x',
      workload_kind: 'x',
      workload_name: 'x',
      container_name: 'x',
      image_digest: '',
      node_name: 'x',
    },
    tracking_since: inSecs(-10 * HOUR),
  }
  assert.equal((await take(app, [{ ...one, ...other, heartbeat_at: inSecs(-50) }])).written, 1)
  const is = await only(sql)
  assert.deepEqual({ ...is, last_heartbeat: was.last_heartbeat }, was)
  assert.notEqual(is.last_heartbeat, was.last_heartbeat)
})

test('POST /runtime/coverage 200: a newer heartbeat is a HOT update', async () => {
  const sent = Array.from({ length: 40 }, () => heartbeat({ heartbeat_at: inSecs(-90) }))
  await take(app, sent)
  await sql.begin(async (one) => {
    const rows = sent
      .slice(0, 9)
      .map((beat) => ({ ...beat, heartbeat_at: inSecs(-9), events_dropped: 1, unsent: 1, mode: 'exec' }))
    await one`select store_heartbeats(${JSON.stringify(rows)}::text::json)`
    const [row] = await one<[{ all: number; hot: number }]>`
      select pg_stat_get_xact_tuples_updated('runtime_coverage'::regclass)::int as all,
             pg_stat_get_xact_tuples_hot_updated('runtime_coverage'::regclass)::int as hot`
    assert.deepEqual(row, { all: 9, hot: 9 })
  })
})

describe('times', () => {
  test('POST /runtime/coverage 200: future times are cut to now, and tracking does not begin after the heartbeat', async () => {
    await take(app, [
      heartbeat({ heartbeat_at: inSecs(HOUR), tracking_since: inSecs(2 * HOUR), probe_attached_at: inSecs(HOUR) }),
    ])
    const row = await only(sql)
    for (const time of [row.last_heartbeat, row.tracking_since, row.covered_since, row.probe_attached_at]) isNow(time)
    await sql`truncate runtime_coverage`
    await take(app, [heartbeat({ heartbeat_at: inSecs(-50), tracking_since: inSecs(-20) })])
    const { tracking_since, covered_since, last_heartbeat } = await only(sql)
    assert.deepEqual([tracking_since, covered_since], [last_heartbeat, last_heartbeat])
  })

  test('POST /runtime/coverage 200: without the exec probe, coverage begins with the heartbeat', async () => {
    await take(app, [heartbeat({ exec_probe: false })])
    const { covered_since, last_heartbeat } = await only(sql)
    assert.equal(covered_since, last_heartbeat)
  })

  test('POST /runtime/coverage 200: valid times with up to nine digits are accepted', async () => {
    const times = Object.keys(GOOD_TIMES)
    assert.equal(
      (
        await take(
          app,
          times.map((tracking_since) => heartbeat({ tracking_since })),
        )
      ).written,
      times.length,
    )
  })

  for (const key of ['tracking_since', 'heartbeat_at', 'probe_attached_at'])
    test(`POST /runtime/coverage 200: an entry is dropped when ${key} is invalid or has a zone`, async () => {
      const bad = [...BAD_TIMES, 7, true, {}, [], '9'.repeat(100_000), `${inSecs(0)}Z`, `${inSecs(0)}+02:00`]
      const { accepted, dropped, written } = await take(app, [
        heartbeat(),
        ...bad.map((time) => heartbeat({ [key]: time })),
      ])
      assert.deepEqual([accepted, dropped, written], [1, bad.length, 1])
    })
})

describe('the run without a gap', () => {
  const on = { exec_probe: true, lib_probe: true, mode: 'full' }

  test('POST /runtime/coverage 200: heartbeats on time keep the run', async () => {
    const { row, at } = await history([40], [30], [1])
    assert.deepEqual([row.gaps, row.last_gap], [0, null])
    sameTime(row.covered_since, at(1_000))
  })

  test('POST /runtime/coverage 200: a heartbeat is late after three of the intervals last announced and a minute, not before', async () => {
    for (const [after, promised, gaps] of [
      [960, 300, 0],
      [961, 300, 1],
      [63, 1, 0],
      [64, 1, 1],
    ] as const) {
      await sql`truncate runtime_coverage`
      const one = heartbeat({ heartbeat_secs: promised, tracking_since: '2026-01-01T00:00:00' })
      const at = (secs: number) => new Date(Date.UTC(2026, 0, 2) + secs * 1_000).toISOString().slice(0, -1)
      await take(app, [{ ...one, heartbeat_at: at(0) }])
      await take(app, [{ ...one, heartbeat_at: at(after), heartbeat_secs: promised === 300 ? 600 : 1 }])
      const row = await only(sql)
      assert.deepEqual([row.gaps, row.last_gap], [gaps, gaps ? 'late_heartbeat' : null], `${after} s`)
      sameTime(row.covered_since, gaps ? at(after) : '2026-01-01T00:00:00')
      assert.equal(row.heartbeat_secs, promised === 300 ? 600 : 1)
    }
  })

  for (const [what, change] of [
    ['mode', { mode: 'exec' }],
    ['exec probe', { exec_probe: false }],
    ['library probe', { lib_probe: false }],
  ] as const)
    test(`POST /runtime/coverage 200: a change of the ${what} begins a new run, each time`, async () => {
      const { row, at } = await history([40], [30, change], [20, change], [10, on], [1, on])
      assert.deepEqual([row.gaps, row.last_gap], [2, 'probe_change'])
      sameTime(row.covered_since, at(10))
    })

  test('POST /runtime/coverage 200: a probe that was attached after the previous heartbeat begins a new run', async () => {
    const base = Date.now()
    const at = (hours: number) => new Date(base - hours * HOUR * 1_000).toISOString().slice(0, -1)
    const one = heartbeat({ heartbeat_secs: 86_400, tracking_since: at(90) })
    const beat = (hours: number, attached?: number) =>
      take(app, [
        { ...one, heartbeat_at: at(hours), ...(attached !== undefined && { probe_attached_at: at(attached) }) },
      ])
    for (const [hours, attached, gaps] of [
      [50, 91, 0],
      [40, 50, 0],
      [30, undefined, 0],
      [20, 29, 1],
      [10, 29, 1],
      [9, undefined, 1],
    ] as const) {
      await beat(hours, attached)
      assert.equal((await only(sql)).gaps, gaps, `${hours} ${attached}`)
    }
    const { last_gap, covered_since, probe_attached_at } = await only(sql)
    assert.equal(last_gap, 'probe_restart')
    sameTime(covered_since, at(20))
    sameTime(probe_attached_at, at(29))
  })

  test('POST /runtime/coverage 200: tracking that began after the previous heartbeat is a gap, and the new run begins with it', async () => {
    const base = Date.now()
    const at = (hours: number) => new Date(base - hours * HOUR * 1_000).toISOString().slice(0, -1)
    const one = heartbeat({ heartbeat_secs: 86_400, tracking_since: at(90) })
    for (const [hours, tracked, gaps] of [
      [50, 90, 0],
      [40, 50, 0],
      [30, 91, 0],
      [20, 29.9, 1],
      [10, 29.9, 1],
    ] as const) {
      await take(app, [{ ...one, heartbeat_at: at(hours), tracking_since: at(tracked) }])
      assert.equal((await only(sql)).gaps, gaps, `${hours} ${tracked}`)
    }
    const { last_gap, covered_since, tracking_since } = await only(sql)
    assert.equal(last_gap, 'probe_restart')
    sameTime(covered_since, at(29.9))
    // The first start of tracking is kept: the container was not watched from its own start.
    sameTime(tracking_since, at(90))
  })

  test('POST /runtime/coverage 200: after new tracking the run begins with the heartbeat if that is late or its probe is missing or newly attached', async () => {
    const base = Date.now()
    const at = (hours: number) => new Date(base - hours * HOUR * 1_000).toISOString().slice(0, -1)
    const one = heartbeat({ heartbeat_secs: 3_600, tracking_since: at(90) })
    const grace = 3 + 1 / 60
    for (const [what, fields, since] of [
      ['in time after a long silence', { tracking_since: at(1 + grace) }, 1 + grace],
      ['late', { tracking_since: at(1 + grace + 0.001) }, 1],
      ['by the cadence it has now', { tracking_since: at(5), heartbeat_secs: 7_200 }, 5],
      ['without a probe', { tracking_since: at(2), exec_probe: false }, 1],
      ['with a probe that was attached then', { tracking_since: at(2), probe_attached_at: at(2) }, 1],
      ['with a probe that was attached before', { tracking_since: at(2), probe_attached_at: at(60) }, 2],
      ['with another mode', { tracking_since: at(2), mode: 'exec' }, 2],
    ] as const) {
      await sql`truncate runtime_coverage`
      await take(app, [{ ...one, heartbeat_at: at(50) }])
      await take(app, [{ ...one, heartbeat_at: at(1), ...fields }])
      const row = await only(sql)
      assert.equal(row.gaps, 1, what)
      assert.equal(row.covered_since, shown(at(since)), what)
    }
  })

  test('POST /runtime/coverage 200: the last gap has the first reason of late_heartbeat, probe_restart, probe_change', async () => {
    const late = { heartbeat_secs: 60 }
    for (const [first, second, reason] of [
      [late, { mode: 'exec', probe_attached_at: inSecs(-1) }, 'late_heartbeat'],
      [{}, { mode: 'exec', probe_attached_at: inSecs(-1) }, 'probe_restart'],
      [{}, { mode: 'exec' }, 'probe_change'],
    ] as const) {
      await sql`truncate runtime_coverage`
      const { row, at } = await history([2, first], [1, second])
      assert.deepEqual([row.gaps, row.last_gap], [1, reason])
      sameTime(row.covered_since, at(1))
    }
  })

  test('POST /runtime/coverage 200: `backfill` replaces `start`, but not the other way round', async () => {
    const { row } = await history([3], [2, { start_mode: 'backfill' }], [1, { start_mode: 'start' }])
    assert.deepEqual([row.start_mode, row.gaps], ['backfill', 0])
  })
})

describe('counters and flags', () => {
  test('POST /runtime/coverage 200: losses add up, and the time of the last loss is kept', async () => {
    const { row, at } = await history([40], [30, { events_dropped: 2 }], [20, { events_dropped: 3 }], [10])
    assert.equal(row.events_dropped, 5)
    sameTime(row.last_drop_at, at(20))
  })

  test('POST /runtime/coverage 200: counts are capped at 10^12 in an entry, in a post and in total', async () => {
    const one = heartbeat({ heartbeat_at: inSecs(-9), events_dropped: 1e300, unsent: Number.MAX_SAFE_INTEGER })
    await take(app, [one])
    const { events_dropped, unsent } = await only(sql)
    assert.deepEqual([events_dropped, unsent], [MAX_COUNT, MAX_COUNT])
    await take(
      app,
      [8, 7].map((secs) => ({ ...one, heartbeat_at: inSecs(-secs), events_dropped: MAX_COUNT - 1 })),
    )
    assert.equal((await only(sql)).events_dropped, MAX_COUNT)
  })

  test('POST /runtime/coverage 200: unsent has the newest value; incomplete stays true', async () => {
    const { row } = await history([3, { unsent: 5, incomplete: true }], [2, { unsent: 7 }], [1])
    assert.deepEqual([row.unsent, row.incomplete], [0, true])
  })

  test('POST /runtime/coverage 200: heartbeats after the end of a container change nothing', async () => {
    const { row, at } = await history(
      [3],
      [2, { ended: true, unsent: 4 }],
      [1, { events_dropped: 9, mode: 'exec', incomplete: true, unsent: 0 }],
    )
    assert.deepEqual([row.ended, row.unsent, row.events_dropped, row.mode, row.incomplete], [true, 4, 0, 'full', false])
    sameTime(row.last_heartbeat, at(2))
  })

  test('POST /runtime/coverage 200: several heartbeats of one container in a post have the same result as separate posts, in any order', async () => {
    const base = Date.now()
    const at = (hours: number) => new Date(base - hours * HOUR * 1_000).toISOString().slice(0, -1)
    const one = heartbeat({ heartbeat_secs: 3_600, tracking_since: at(90), image_digest: '' })
    const stories: [what: string, stored: Fields[], posted: Fields[]][] = [
      ['a late one between two', [], [{ heartbeat_at: at(20) }, { heartbeat_at: at(9) }, { heartbeat_at: at(8) }]],
      [
        'another mode, and back',
        [{ heartbeat_at: at(9) }],
        [{ heartbeat_at: at(8), mode: 'exec' }, { heartbeat_at: at(7) }],
      ],
      ['losses of each', [], [3, 2, 1].map((n) => ({ heartbeat_at: at(n), events_dropped: n % 2 ? n : 0, unsent: n }))],
      [
        'tracking that began anew',
        [],
        [{ heartbeat_at: at(9) }, { heartbeat_at: at(8), tracking_since: at(8.5) }, { heartbeat_at: at(7) }],
      ],
      [
        'the end, and more',
        [],
        [{ heartbeat_at: at(9) }, { heartbeat_at: at(8), ended: true }, { heartbeat_at: at(7), events_dropped: 5 }],
      ],
      [
        'older ones than what is stored',
        [{ heartbeat_at: at(8) }],
        [{ heartbeat_at: at(9), mode: 'exec' }, { heartbeat_at: at(7) }],
      ],
      [
        'two of one moment',
        [],
        [
          { heartbeat_at: at(9), unsent: 2 },
          { heartbeat_at: at(9), unsent: 3, events_dropped: 1 },
        ],
      ],
      [
        'an image that becomes known',
        [],
        [{ heartbeat_at: at(9) }, { heartbeat_at: at(8), image_digest: digest('app') }],
      ],
      [
        'two of the future',
        [],
        [
          { heartbeat_at: at(-2), unsent: 1 },
          { heartbeat_at: at(-1), unsent: 2 },
        ].reverse(),
      ],
    ]
    for (const [what, before, posted] of stories) {
      const said = posted.map((fields) => ({ ...one, ...fields }))
      const told = async (posts: Fields[][]) => {
        await sql`truncate runtime_coverage`
        for (const fields of before) await take(app, [{ ...one, ...fields }])
        for (const entries of posts) await take(app, entries)
        const row = await only(sql)
        // The time of each is its own arrival, so only `unsent` is compared.
        return what === 'two of the future' ? [row.unsent] : row
      }
      const apart = await told(said.map((entry) => [entry]))
      assert.deepEqual(await told([said]), apart, what)
      // Of two with the same time the first wins, so their order matters.
      if (what !== 'two of one moment')
        assert.deepEqual(await told([said.toReversed()]), apart, `${what}, in another order`)
    }
  })

  test('POST /runtime/coverage 200: several heartbeats of one container are all accepted and write one row', async () => {
    const one = heartbeat()
    const at = [30, 20, 40].map((secs) => inSecs(-secs))
    const several = at.map((heartbeat_at) => ({ ...one, heartbeat_at }))
    assert.deepEqual(await take(app, [...several, heartbeat()]), { accepted: 4, dropped: 0, written: 2 })
    assert.deepEqual(await take(app, several), { accepted: 3, dropped: 0, written: 0 })
  })

  test('POST /runtime/coverage 200: beyond 100 heartbeats of one container in a post the rest is dropped and counted', async () => {
    const one = heartbeat()
    const several = Array.from({ length: 102 }, (_, n) => ({
      ...one,
      heartbeat_at: inSecs(-6_000 + n),
      events_dropped: 1,
    }))
    const before = await rejected()
    assert.deepEqual(await take(app, [...several, heartbeat()]), { accepted: 101, dropped: 2, written: 2 })
    assert.equal(await rejected(), before + 2)
    const row = (await stored(sql)).find(({ container_id }) => container_id === one.container_id)!
    assert.equal(row.events_dropped, 100)
    sameTime(row.last_heartbeat, several[99]!.heartbeat_at)
  })
})

describe('the probe for capabilities', () => {
  const [ON, OTHER] = [
    { cap_probe: true, cap_hook: 'cap_capable' },
    { cap_probe: true, cap_hook: 'security_capable' },
  ]
  const NOTHING = { cap_probe: null, cap_hook: null }

  test('POST /runtime/coverage 200: what a heartbeat says of it is stored; without it, there is none', async () => {
    for (const [fields, probe, hook] of [
      [ON, true, 'cap_capable'],
      [OTHER, true, 'security_capable'],
      [{ cap_probe: true }, true, null],
      [NOTHING, false, null],
      [{}, false, null],
    ] as const) {
      await sql`truncate runtime_coverage`
      await take(app, [heartbeat(fields)])
      const { cap_probe, cap_hook, cap_since, tracking_since } = await only(sql)
      assert.deepEqual([cap_probe, cap_hook, cap_since], [probe, hook, tracking_since])
    }
  })

  for (const [what, before, after] of [
    ['attached', {}, ON],
    ['attached, at the same function', { ...ON, cap_probe: false }, ON],
    ['detached', ON, NOTHING],
    ['at another function', ON, OTHER],
    ['at a function that is not known any more', ON, { cap_probe: true }],
  ] as const)
    test(`POST /runtime/coverage 200: ${what}, it begins its own time anew, and no other`, async () => {
      const { row, at } = await history([9, before], [6, before], [3, after], [1, after])
      sameTime(row.cap_since, at(3))
      assert.deepEqual([row.gaps, row.last_gap, row.covered_since], [0, null, row.tracking_since])
    })

  test('POST /runtime/coverage 200: of several heartbeats in one post, the change counts where it is', async () => {
    const [one, at] = [heartbeat({ heartbeat_secs: 86_400 }), (hours: number) => inSecs(-hours * HOUR)]
    const times = [at(5), at(4), at(3)]
    await take(
      app,
      [ON, OTHER, OTHER].map((fields, n) => ({ ...one, ...fields, heartbeat_at: times[n] })),
    )
    sameTime((await only(sql)).cap_since, times[1])
  })

  test('POST /runtime/coverage 200: an unchanged probe keeps its time, also over a gap', async () => {
    const { row, at } = await history([9, ON], [6, ON], [3, { ...ON, mode: 'exec' }])
    assert.equal(row.cap_since, row.tracking_since)
    sameTime(row.covered_since, at(3))
  })

  test('POST /runtime/coverage 200: an old heartbeat says nothing about it', async () => {
    const { row } = await history([3, ON], [6, OTHER])
    assert.deepEqual([row.cap_hook, row.cap_since], ['cap_capable', row.tracking_since])
  })

  /** Stores a heartbeat as the release before does, whose documents have no `cap_probe`. */
  const byOldBroker = (fields: Fields) => {
    const { cap_probe, cap_hook, ...old } = heartbeat(fields)
    const { probe_attached_at = null } = old
    return sql`select store_heartbeats(${JSON.stringify([{ ...old, probe_attached_at }])}::text::json)`
  }

  test('POST /runtime/coverage 200: a broker of the release before leaves it as it is during an upgrade', async () => {
    const one = heartbeat({ ...ON, heartbeat_at: inSecs(-900) })
    await take(app, [one])
    await byOldBroker({ ...one, heartbeat_at: inSecs(-600) })
    const row = await only(sql)
    assert.deepEqual([row.cap_probe, row.cap_hook, row.cap_since], [true, 'cap_capable', row.tracking_since])
    await take(app, [{ ...one, heartbeat_at: inSecs(-300) }])
    assert.equal((await only(sql)).cap_since, row.tracking_since)
  })

  test('POST /runtime/coverage 200: of a container that only the release before heard of, it is known from now on', async () => {
    const one = heartbeat({ heartbeat_at: inSecs(-600) })
    await byOldBroker(one)
    const { cap_probe, cap_hook, cap_since } = await only(sql)
    assert.deepEqual([cap_probe, cap_hook, cap_since], [null, null, null])
    const heartbeat_at = inSecs(-300)
    await take(app, [{ ...one, ...ON, heartbeat_at }])
    sameTime((await only(sql)).cap_since, heartbeat_at)
  })
})

describe('the workload', () => {
  test('POST /runtime/coverage 200: without a workload the pod is the workload', async () => {
    const none = [
      { workload_kind: undefined, workload_name: undefined },
      { workload_kind: null, workload_name: null },
    ]
    await take(
      app,
      none.map((fields) => heartbeat({ ...fields, pod_name: 'bare' })),
    )
    for (const { workload_kind, workload_name } of await stored(sql))
      assert.deepEqual([workload_kind, workload_name], ['Pod', 'bare'])
  })

  test('POST /runtime/coverage 200: a workload or image that is reported later is set on the row, and its losses and gaps stay', async () => {
    const base = Date.now()
    const at = (hours: number) => new Date(base - hours * HOUR * 1_000).toISOString().slice(0, -1)
    const one = heartbeat({ pod_name: 'web-0', heartbeat_secs: 3_600, tracking_since: at(90) })
    const unknown = { workload_kind: undefined, workload_name: undefined, image_digest: undefined }
    const lost = { events_dropped: 3, unsent: 2, incomplete: true, mode: 'exec' }
    const { image_digest } = one
    for (const [what, first, next, is] of [
      ['the image', { image_digest: '' }, {}, ['Deployment', 'web', image_digest]],
      ['the workload', { ...unknown, image_digest }, {}, ['Deployment', 'web', image_digest]],
      ['both', unknown, {}, ['Deployment', 'web', image_digest]],
      [
        'what was said is the pod',
        { workload_kind: 'Pod', workload_name: 'web-0' },
        {},
        ['Deployment', 'web', image_digest],
      ],
      ['one of them', unknown, { image_digest: '' }, ['Deployment', 'web', '']],
      ['a bare pod stays one', unknown, { ...unknown, image_digest }, ['Pod', 'web-0', image_digest]],
      ['what is known is not forgotten', {}, unknown, ['Deployment', 'web', image_digest]],
      [
        'nor does it change',
        {},
        { workload_name: 'api', image_digest: digest('api') },
        ['Deployment', 'web', image_digest],
      ],
    ] as const) {
      await sql`truncate runtime_coverage`
      await take(app, [{ ...one, ...first, ...lost, heartbeat_at: at(20) }])
      await take(app, [{ ...one, ...next, mode: 'exec', unsent: 2, heartbeat_at: at(9) }])
      const row = await only(sql)
      assert.deepEqual([row.workload_kind, row.workload_name, row.image_digest], is, what)
      assert.deepEqual([row.events_dropped, row.unsent, row.incomplete, row.gaps], [3, 2, true, 1], what)
      sameTime(row.last_drop_at, at(20))
      sameTime(row.covered_since, at(9))
    }
  })

  test('POST /runtime/coverage 200: an entry with only one of workload kind and name is dropped', async () => {
    const halves = [
      { workload_kind: undefined },
      { workload_name: undefined },
      { workload_kind: null },
      { workload_name: null },
    ]
    assert.equal((await take(app, halves.map(heartbeat))).dropped, 4)
  })
})

describe('entries that are dropped', () => {
  const names = {
    pod_namespace: 253,
    pod_name: 253,
    workload_kind: 63,
    workload_name: 253,
    container_name: 253,
    node_name: 253,
  }
  const bad: [what: string, field: string, value: unknown][] = [
    ...Object.entries(names).flatMap(([field, most]): [string, string, unknown][] => [
      ['empty', field, ''],
      ['blank', field, ' '],
      ['a number', field, 7],
      ['with white space before', field, '\u00a0x'],
      ['with white space after', field, 'x\n'],
      [`of ${most + 1} bytes`, field, 'x'.repeat(most + 1)],
      [`of ${most} characters, more bytes`, field, `${'x'.repeat(most - 1)}é`],
      ['with U+0000', field, 'a\0b'],
      ['with half a surrogate pair', field, 'a\ud800'],
    ]),
    ...[
      'pod_namespace',
      'pod_name',
      'container_name',
      'node_name',
      'container_id',
      'mode',
      'exec_probe',
      'lib_probe',
      'start_mode',
    ]
      .concat('tracking_since', 'heartbeat_at', 'heartbeat_secs')
      .flatMap((field): [string, string, unknown][] => [
        ['missing', field, undefined],
        ['null', field, null],
        ['an object', field, {}],
      ]),
    ...['', 'a-b', 'containerd://abc', 'é', 'a\n', 'a'.repeat(129), 7].map((id): [string, string, unknown] => [
      JSON.stringify(id).slice(0, 20),
      'container_id',
      id,
    ]),
    ...['latest', ' ', digest('x').slice(0, -1), digest('x').toUpperCase(), 7, {}].map(
      (image): [string, string, unknown] => [JSON.stringify(image).slice(0, 20), 'image_digest', image],
    ),
    ...['off', 'FULL', ' full', 7].map((mode): [string, string, unknown] => [JSON.stringify(mode), 'mode', mode]),
    ...['resume', 'START', true].map((mode): [string, string, unknown] => [JSON.stringify(mode), 'start_mode', mode]),
    ...[0, -1, 1.5, 86_401, '300'].map((secs): [string, string, unknown] => [
      JSON.stringify(secs),
      'heartbeat_secs',
      secs,
    ]),
    ...['', 'CAP_CAPABLE', 'x', 7, true, {}].map((hook): [string, string, unknown] => [
      JSON.stringify(hook),
      'cap_hook',
      hook,
    ]),
    ...['exec_probe', 'lib_probe', 'incomplete', 'ended', 'cap_probe'].flatMap((field) =>
      ['true', 1, []].map((flag): [string, string, unknown] => [JSON.stringify(flag), field, flag]),
    ),
    ...['events_dropped', 'unsent'].flatMap((field) =>
      ['3', -1, 1.5, true, [1]].map((count): [string, string, unknown] => [JSON.stringify(count), field, count]),
    ),
  ]
  for (const field of new Set(bad.map(([, name]) => name)))
    test(`POST /runtime/coverage 200: each entry with a bad ${field} is dropped and counted, the others are stored`, async () => {
      const before = await rejected()
      const entries: unknown[] = [heartbeat(), heartbeat()]
      for (const [what, name, value] of bad.filter(([, name]) => name === field)) {
        entries.splice(-1, 0, heartbeat({ [name]: value }))
        assert.deepEqual(
          (await parseHeartbeats([heartbeat({ [name]: value })])).dropped,
          { [field]: 1 },
          `${what} counts by its field`,
        )
      }
      const dropped = entries.length - 2
      assert.deepEqual(await take(app, entries), { accepted: 2, dropped, written: 2 })
      assert.equal((await stored(sql)).length, 2)
      assert.equal(await rejected(), before + dropped)
    })

  test('POST /runtime/coverage 200: an entry that is no object is dropped', async () => {
    const none = [null, 'text', 7, true, [], [heartbeat()]]
    assert.deepEqual(await take(app, [...none, heartbeat()]), { accepted: 1, dropped: none.length, written: 1 })
  })

  test('POST /runtime/coverage 200: a number beyond the range of a double drops the entry', async () => {
    const body = JSON.stringify([heartbeat(), heartbeat({ unsent: 4_711 })]).replace('4711', '1e999')
    assert.deepEqual((await app.post(PATH, body)).json, { accepted: 1, dropped: 1, written: 1 })
  })

  test('POST /runtime/coverage 200: one log line a minute counts dropped entries by field', async () => {
    const { BROKER_TOKEN_INGEST: token } = TOKENS
    const other = { post: (path: string, body: unknown) => guarded.post(path, body, { token }) }
    await take(other, [
      heartbeat({ mode: 'off' }),
      heartbeat({ mode: 7 }),
      heartbeat({ container_id: '' }),
      7,
      heartbeat(),
    ])
    await take(other, [heartbeat({ mode: 'off' })])
    const lines = guarded.logged.filter(({ level }) => level === 40)
    assert.equal(lines.length, 1)
    const { mode, container_id, entry } = lines[0]!
    assert.deepEqual([mode, container_id, entry], [2, 1, 1])
  })

  test('POST /runtime/coverage 200: unusual but valid entries are stored', async () => {
    const longest = {
      workload_kind: 'K'.repeat(63),
      container_id: 'aZ09'.repeat(32),
      image_digest: `sha512:${'0'.repeat(128)}`,
    }
    for (const name of Object.keys(names).filter((key) => key !== 'workload_kind'))
      Object.assign(longest, { [name]: `${'n'.repeat(251)}é` })
    const fine = [
      longest,
      { image_digest: '' },
      { later: { a: '\0' }, 'a\0': 1 },
      { cap_probe: true, cap_hook: 'security_capable' },
      { heartbeat_secs: 1 },
      { heartbeat_secs: 86_400 },
      { pod_name: 'ein Pod', container_name: 'Größe' },
    ]
    assert.equal((await take(app, fine.map(heartbeat))).written, fine.length)
  })
})

describe('the list', () => {
  for (const body of ['{}', 'null', '7', '"x"', JSON.stringify(heartbeat())])
    test(`POST /runtime/coverage 400: ${body.slice(0, 4)} instead of a list`, async () => {
      const answer = await app.post(PATH, body)
      assert.equal(answer.status, 400)
      assert.match(answer.text, /^Json deserialize error: .*expected array/)
    })

  const broken = refusedBodies({ a: 'x' }, 'a').filter(
    ({ what, says }) => !/where an object|U\+0000|surrogate|2 MiB/.test(what) && !/2097152/.test(says.source),
  )
  for (const { what, status, says, body, headers } of broken)
    test(`POST /runtime/coverage ${status}: ${what}`, async () => {
      const answer = await app.request('POST', PATH, { body, ...(headers && { headers }) })
      assert.equal(answer.status, status, answer.text)
      assert.match(answer.text, says)
    })

  const large = (bytes: number) => JSON.stringify([heartbeat()]).padEnd(bytes)
  const gzip = { headers: { 'content-encoding': 'gzip' } }

  test('POST /runtime/coverage 200: a body of 4 MiB is accepted, compressed or not', async () => {
    assert.equal((await app.post(PATH, large(MAX_BYTES))).json.written, 1)
    assert.equal((await app.post(PATH, gzipSync(large(MAX_BYTES)), gzip)).json.written, 1)
  })

  test('POST /runtime/coverage 413: a body above 4 MiB is refused, compressed or not', async () => {
    for (const answer of [
      await app.post(PATH, large(MAX_BYTES + 1)),
      await app.post(PATH, gzipSync(large(MAX_BYTES + 1)), gzip),
    ]) {
      assert.equal(answer.status, 413)
      assert.match(answer.text, /4194304 bytes/)
    }
    assert.deepEqual(await stored(sql), [])
  })

  test('POST /runtime/coverage 200: 5000 entries are accepted, compressed or not', async () => {
    const entries = Array.from({ length: 5_000 }, () => heartbeat())
    const whole = { accepted: 5_000, dropped: 0, written: 5_000 }
    assert.deepEqual(await take(app, entries), whole)
    assert.deepEqual((await app.post(PATH, gzipSync(JSON.stringify(entries)), gzip)).json, { ...whole, written: 0 })
  })

  test('POST /runtime/coverage 413: more than 5000 elements of any kind are refused, compressed or not, and nothing is written', async () => {
    for (const entry of [0, heartbeat(), {}]) {
      const body = JSON.stringify(Array(5_001).fill(entry))
      for (const answer of [await app.post(PATH, body), await app.post(PATH, gzipSync(body), gzip)]) {
        assert.equal(answer.status, 413)
        assert.match(answer.text, /more than 5000 elements/)
      }
    }
    assert.deepEqual(await stored(sql), [])
  })

  test('POST /runtime/coverage 200: text that PostgreSQL cannot store drops its entry, in small and large lists', async () => {
    for (const count of [2, 300]) {
      const entries = Array.from({ length: count }, (_, n) =>
        heartbeat({ later: ['\0', '\ud800'], ...(n % 2 && { node_name: 'a\0' }) }),
      )
      assert.deepEqual(await take(app, entries), { accepted: count / 2, dropped: count / 2, written: count / 2 })
    }
  })
})

test('POST /runtime/coverage 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.post(PATH, []))
  assertUnauthorized(await guarded.post(PATH, [], { token: 'nobody' }))
})

test('POST /runtime/coverage 403: a token without the scope ingest', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_SUPPLYCHAIN])
    assertForbidden(await guarded.post(PATH, [], { token }), 'ingest')
  assert.equal((await guarded.post(PATH, [heartbeat()], { token: TOKENS.BROKER_TOKEN_INGEST })).status, 200)
})

test('POST /runtime/coverage 503: the table is locked for longer than a statement may take, and nothing is written', async () => {
  const slow = await startApp({ DB_STATEMENT_TIMEOUT_MS: '300' })
  await whileLocked(slow.sql, 'runtime_coverage', async () => assertDatabaseBusy(await slow.post(PATH, [heartbeat()])))
  assert.deepEqual(await stored(slow.sql), [])
})

test('POST /runtime/coverage 200: concurrent posts of the same containers in opposite order leave the newest heartbeat of each', async () => {
  const ids = Array.from({ length: 60 }, containerId)
  const posts = Array.from({ length: 8 }, (_, n) =>
    ids.map((container_id) => heartbeat({ container_id, heartbeat_at: inSecs(n - 20), unsent: n, events_dropped: 1 })),
  )
  await Promise.all(posts.map((entries, n) => take(app, n % 2 ? entries : entries.reverse())))
  for (const { unsent, events_dropped } of await stored(sql)) {
    assert.equal(unsent, 7)
    assert.ok(events_dropped >= 1 && events_dropped <= 8)
  }
  assert.equal((await stored(sql)).length, 60)
})
