/** The SQL functions of coverage: each check by itself, and its limits (docs/contract.md#runtime-coverage). */
import assert from 'node:assert/strict'
import { before, beforeEach, describe, test } from 'node:test'
import type postgres from 'postgres'
import { createTestDatabase } from '../support/database.ts'
import { type Asked, coverage, digest, type Fields, HOUR, namespace } from './heartbeats.ts'

const { adminSql: sql } = await createTestDatabase()
type Sql = postgres.Sql

/** The clock of a transaction stands still, so that ages are exact to the microsecond. */
const frozen = (work: (on: Sql) => Promise<void>) => sql.begin((tx) => work(tx as unknown as Sql))

let made = 0

/** A stored container that is covered unless a field says otherwise; times are seconds before now. */
async function instance(on: Sql, fields: Fields = {}): Promise<void> {
  const row = {
    ...{
      cluster_id: 'primary',
      container_id: `c${++made}`,
      pod_namespace: 'ns',
      workload_kind: 'Deployment',
      workload_name: 'web',
    },
    ...{
      container_name: 'app',
      image_digest: digest('app'),
      pod_name: 'web-0',
      node_name: 'n',
      mode: 'full',
      exec_probe: true,
      lib_probe: true,
    },
    ...{
      start_mode: 'start',
      tracked: 48 * HOUR,
      covered: null,
      last: 5,
      heartbeat_secs: 300,
      dropped: null,
      unsent: 0,
      incomplete: false,
      ended: false,
    },
    ...fields,
  }
  await on`
    insert into runtime_coverage (cluster_id, container_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, pod_name,
                                  node_name, mode, exec_probe, lib_probe, start_mode, tracking_since, covered_since, last_heartbeat,
                                  heartbeat_secs, gaps, events_dropped, last_drop_at, unsent, incomplete, ended)
    select i.cluster_id, i.container_id, i.pod_namespace, i.workload_kind, i.workload_name, i.container_name, i.image_digest, i.pod_name,
           i.node_name, i.mode, i.exec_probe, i.lib_probe, i.start_mode, t.now - make_interval(secs => i.tracked),
           t.now - make_interval(secs => coalesce(i.covered, i.tracked)), t.now - make_interval(secs => i.last), i.heartbeat_secs, 0, 0,
           t.now - make_interval(secs => i.dropped), i.unsent, i.incomplete, i.ended
    from json_to_record(${JSON.stringify(row)}::text::json) as i(
      cluster_id text, container_id text, pod_namespace text, workload_kind text, workload_name text, container_name text, image_digest text,
      pod_name text, node_name text, mode text, exec_probe boolean, lib_probe boolean, start_mode text, tracked float8, covered float8,
      last float8, heartbeat_secs integer, dropped float8, unsent bigint, incomplete boolean, ended boolean),
      (select now() at time zone 'utc') t(now)`
}

async function pod(on: Sql, fields: Fields = {}): Promise<void> {
  const row = {
    ...{
      pod_name: `pod-${++made}`,
      pod_namespace: 'ns',
      pod_ip: '',
      pod_ips: [],
      time_stamp: '2026-01-01T00:00:00',
      node_name: 'n',
      is_dead: false,
    },
    ...{ workload_kind: 'Deployment', workload_name: 'web', running_containers: ['app'], ...fields },
  }
  await on`select upsert_pods(${JSON.stringify([row])}::text::json)`
}

const suffix = (
  on: Sql,
  { cluster = 'primary', ns = 'ns', container = 'app', image = digest('app'), isComplete = false } = {},
) => on`
  insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path,
                                  path_hash, path_complete, source, origin, first_seen, last_seen)
  values (${cluster}, ${ns}, 'Deployment', 'web', ${container}, ${image}, 'exec', 'tail', 'x', ${isComplete}, 'ebpf', 'image', '2000-01-01', '2000-01-01')`

const reason = async (on: Sql, asked: Partial<Asked> = {}) => (await coverage(on, { namespace: 'ns', ...asked })).reason

beforeEach(() => sql`truncate runtime_coverage, runtime_executable, pod, pod_address`)

test('a container that is watched from its start is covered from then on', () =>
  frozen(async (on) => {
    await instance(on, { tracked: 30 * HOUR })
    const [row] = await on<[{ is: boolean }]>`
      select covered and reason is null and observed_since = now() at time zone 'utc' - interval '30 hours' as is
      from kg_runtime_coverage('primary', 'ns', 'Deployment', 'web', 'app', ${digest('app')}, 24)`
    assert.ok(row.is)
  }))

describe('always one row', () => {
  const nothing = { covered: false, observed_since: null, reason: 'no_runtime_data' }
  before(() => sql`truncate runtime_coverage`)

  test('without data, for another cluster and for null arguments', async () => {
    await instance(sql)
    for (const asked of [
      { name: 'other' },
      { kind: 'StatefulSet' },
      { namespace: 'other' },
      { container: 'other' },
      { image: '' },
      { image: digest('other') },
      { cluster: 'secondary' },
      ...['cluster', 'namespace', 'kind', 'name', 'container', 'image'].map((key) => ({
        [key]: null as unknown as string,
      })),
    ])
      assert.deepEqual(await coverage(sql, { namespace: 'ns', ...asked }), nothing, JSON.stringify(asked))
  })

  test('with named arguments; a null digest matches rows without a digest', async () => {
    await instance(sql, { image_digest: '' })
    const rows = await sql`
      select * from kg_runtime_coverage(cluster => 'primary', namespace => 'ns', kind => 'Deployment', name => 'web', container => 'app',
                                        image_digest => null, window_hours => 24)`
    assert.deepEqual(
      [rows.length, rows[0]!.covered, Object.keys(rows[0]!)],
      [1, true, ['covered', 'observed_since', 'reason']],
    )
  })
})

describe('the window', () => {
  test('hours below 0 count as 0, and windows longer than the calendar are accepted', () =>
    frozen(async (on) => {
      await instance(on, { last: 0, tracked: 0 })
      for (const hours of [0, -1, -(2 ** 31)]) assert.equal(await reason(on, { hours }), null, String(hours))
      assert.equal(await reason(on, { hours: null }), null)
      for (const hours of [1, 50_000_000, 50_000_001, 2 ** 31 - 1])
        assert.equal(await reason(on, { hours }), 'capture_gap', String(hours))
      await instance(on, { container_name: 'old', tracked: 0 })
      await on`update runtime_coverage set tracking_since = '0001-01-01', covered_since = '0001-01-01' where container_name = 'old'`
      assert.equal(await reason(on, { container: 'old', hours: 17_000_000 }), null)
      assert.equal(await reason(on, { container: 'old', hours: 2 ** 31 - 1 }), 'capture_gap')
    }))

  test('a heartbeat at the start of the window is inside it', () =>
    frozen(async (on) => {
      await instance(on, { last: HOUR, ended: true })
      await instance(on, { last: HOUR + 0.000001, ended: true, container_name: 'before' })
      assert.equal(await reason(on, { hours: 1 }), null)
      assert.equal(await reason(on, { hours: 1, container: 'before' }), 'no_runtime_data')
    }))

  test('a container watched from the start of the window is covered, one watched a microsecond later is not', () =>
    frozen(async (on) => {
      for (const [container_name, tracked, expected] of [
        ['at', 24 * HOUR, null],
        ['after', 24 * HOUR - 0.000001, 'capture_gap'],
      ] as const) {
        await instance(on, { container_name, tracked })
        assert.equal(await reason(on, { container: container_name }), expected)
      }
    }))
})

describe('each check', () => {
  const faults: [reason: string, fields: Fields][] = [
    ['probes_missing', { exec_probe: false }],
    ['libraries_not_tracked', { lib_probe: false }],
    ['libraries_not_tracked', { mode: 'exec' }],
    ['events_dropped', { dropped: 60 }],
    ['events_pending', { unsent: 1 }],
    ['incomplete_paths', { incomplete: true }],
    ['capture_gap', { last: 961 }],
  ]
  for (const [n, [expected, fields]] of faults.entries())
    test(`${expected} for ${JSON.stringify(fields)}: one instance is enough, and later checks do not change the reason`, () =>
      frozen(async (on) => {
        await instance(on)
        await instance(on, fields)
        await instance(on)
        assert.equal(await reason(on), expected)
        for (const [, others] of faults.slice(n + 1)) await instance(on, others)
        assert.equal(await reason(on), expected)
      }))

  test('a loss at the start of the window is inside it', () =>
    frozen(async (on) => {
      await instance(on, { dropped: 24 * HOUR })
      assert.equal(await reason(on), 'events_dropped')
      await instance(on, { dropped: 24 * HOUR + 0.000001, container_name: 'before' })
      assert.equal(await reason(on, { container: 'before' }), null)
    }))

  test('unsent events at the last heartbeat count, also after the container has ended', () =>
    frozen(async (on) => {
      await instance(on, { unsent: 3, ended: true })
      assert.equal(await reason(on), 'events_pending')
    }))

  test('an incomplete path of that container and image counts, however old', () =>
    frozen(async (on) => {
      await instance(on)
      for (const other of [{ cluster: 'other' }, { ns: 'other' }, { container: 'side' }, { image: '' }])
        await suffix(on, other)
      await on`update runtime_executable set path_complete = path_complete`
      assert.equal(await reason(on), null)
      await suffix(on)
      assert.equal(await reason(on), 'incomplete_paths')
      await on`update runtime_executable set path_complete = true`
      assert.equal(await reason(on), null)
    }))

  test('a heartbeat is on time for three intervals and a minute, to the microsecond; an ended container is never late', () =>
    frozen(async (on) => {
      for (const [container_name, heartbeat_secs, last, ended, expected] of [
        ['a', 300, 960, false, null],
        ['b', 300, 960.000001, false, 'capture_gap'],
        ['c', 1, 63, false, null],
        ['d', 1, 64, false, 'capture_gap'],
        ['e', 1, 5_000, true, null],
        ['f', 20_000, 60_060, false, null],
      ] as const) {
        await instance(on, { container_name, heartbeat_secs, last, ended })
        assert.equal(await reason(on, { container: container_name }), expected, container_name)
      }
    }))

  test('a gap or an unseen start counts unless it was before the window', () =>
    frozen(async (on) => {
      const day = 24 * HOUR
      for (const [container_name, start_mode, tracked, covered, expected] of [
        ['a', 'start', 2 * day, day + 1, null],
        ['b', 'start', 2 * day, day, null],
        ['c', 'start', 2 * day, day - 1, 'capture_gap'],
        ['d', 'backfill', day, null, null],
        ['e', 'backfill', day - 1, null, 'capture_gap'],
        ['f', 'start', 60, null, null],
        ['g', 'start', 60, 59, 'capture_gap'],
        ['h', 'backfill', 60, null, 'capture_gap'],
      ] as const) {
        // Covered by itself, so that only the second one can be the reason.
        await instance(on, { container_name })
        await instance(on, { container_name, start_mode, tracked, covered })
        assert.equal(await reason(on, { container: container_name }), expected, container_name)
      }
    }))
})

describe('live pods', () => {
  const gaps = async (on: Sql, what: string, fields: Fields, expected: string | null = 'capture_gap') => {
    await on`truncate pod, pod_address`
    await pod(on, fields)
    assert.equal(await reason(on), expected, what)
  }

  test('that run the container and are not watched are a gap', () =>
    frozen(async (on) => {
      await instance(on)
      await gaps(on, 'nobody watches it', {})
      await gaps(on, 'one of two', { running_containers: ['side', 'app'] })
      await gaps(on, 'watched', { pod_name: 'web-0' }, null)
      await gaps(on, 'dead', { is_dead: true }, null)
      await gaps(on, 'of another container', { running_containers: ['side'] }, null)
      await gaps(on, 'of none', { running_containers: [] }, null)
      await gaps(on, 'of another workload', { workload_name: 'other' }, null)
      await gaps(on, 'of another kind', { workload_kind: 'StatefulSet' }, null)
      await gaps(on, 'of another namespace', { pod_namespace: 'other' }, null)
      await gaps(on, 'of no namespace', { pod_namespace: null }, null)
      await gaps(on, 'half an owner', { workload_kind: null }, null)
    }))

  test('whose containers nobody said are a gap unless one of them is watched', () =>
    frozen(async (on) => {
      await instance(on)
      const unsaid = { pod_name: 'web-1', running_containers: undefined }
      await gaps(on, 'nobody watches it', unsaid)
      await gaps(on, 'dead', { ...unsaid, is_dead: true }, null)
      await gaps(on, 'of another workload', { ...unsaid, workload_name: 'other' }, null)
      const heard = async (what: string, fields: Fields, expected: string | null) => {
        await on`delete from runtime_coverage where pod_name <> 'web-0'`
        await instance(on, { pod_name: 'web-1', ...fields })
        await gaps(on, what, unsaid, expected)
      }
      await heard('on time', {}, null)
      await heard('of another container', { container_name: 'side' }, null)
      await heard('late', { image_digest: digest('other'), last: 961 }, 'capture_gap')
      await heard('ended', { ended: true }, 'capture_gap')
      await heard('of another cluster', { cluster_id: 'other' }, 'capture_gap')
    }))

  test('are watched if a heartbeat of that pod and container is on time and not its last', () =>
    frozen(async (on) => {
      await instance(on)
      await pod(on, { pod_name: 'web-1' })
      const heard = async (what: string, fields: Fields, expected: string | null) => {
        await on`delete from runtime_coverage where pod_name <> 'web-0'`
        await instance(on, { pod_name: 'web-1', ...fields })
        assert.equal(await reason(on), expected, what)
      }
      await heard('on time', {}, null)
      await heard('with another image', { image_digest: digest('other') }, null)
      await heard('late', { image_digest: digest('other'), last: 961 }, 'capture_gap')
      await heard('to the second', { image_digest: digest('other'), last: 960 }, null)
      await heard('of an ended one', { ended: true }, 'capture_gap')
      await heard('of another container', { container_name: 'side' }, 'capture_gap')
      await heard('of another cluster', { cluster_id: 'other' }, 'capture_gap')
      await heard('of another namespace', { pod_namespace: 'other' }, 'capture_gap')
    }))

  test('without a complete owner are their own workload', () =>
    frozen(async (on) => {
      await instance(on, { workload_kind: 'Pod', workload_name: 'bare', pod_name: 'bare', last: 960, ended: true })
      const bare = { kind: 'Pod', name: 'bare' }
      for (const [workload_kind, workload_name, expected] of [
        [null, null, 'capture_gap'],
        ['', ' ', 'capture_gap'],
        ['Deployment', null, 'capture_gap'],
        ['Deployment', '\t', 'capture_gap'],
        [null, 'web', 'capture_gap'],
        ['Deployment', 'web', null],
        ['Pod', 'bare', 'capture_gap'],
        ['Pod', 'other', null],
      ] as const) {
        await on`truncate pod, pod_address`
        await pod(on, { pod_name: 'bare', workload_kind, workload_name })
        assert.equal(await reason(on, bare), expected, `${workload_kind} ${workload_name}`)
      }
      await on`truncate pod, pod_address`
      for (const [pod_name, pod_namespace] of [
        ['bare', 'other'],
        ['naked', 'ns'],
      ])
        await pod(on, { pod_name, pod_namespace, workload_kind: null, workload_name: null })
      assert.equal(await reason(on, bare), null, 'another pod, or one of another namespace')
    }))
})

test('runtime_coverage_of returns a row for each container and image, ordered by bytes', () =>
  frozen(async (on) => {
    const images = ['', digest('a'), digest('b')].sort()
    await instance(on, { container_name: 'b', image_digest: images[2], last: 50 })
    await instance(on, { container_name: 'b', image_digest: images[2], last: 20, mode: 'exec', tracked: 100 * HOUR })
    await instance(on, { container_name: 'b', image_digest: images[0] })
    await instance(on, { container_name: 'B', image_digest: images[1], last: 25 * HOUR })
    await instance(on, { container_name: 'a', image_digest: images[1] })
    await instance(on, { cluster_id: 'other' })
    const ask = (container: string | null, image: string | null, hours = 24) => on`
      select container_name as c, image_digest as i, instances::int as n, extract(epoch from now() at time zone 'utc' - last_heartbeat)::int as last,
             mode, libraries_tracked as libs, covered, extract(epoch from now() at time zone 'utc' - observed_since)::int as since, reason
      from runtime_coverage_of('primary', 'ns', 'Deployment', 'web', ${container}, ${image}, ${hours})`
    const whole = { n: 1, last: 5, mode: 'full', libs: true, covered: true, since: 48 * HOUR, reason: null }
    const [a, b0, b2] = [
      { c: 'a', i: images[1], ...whole },
      { c: 'b', i: images[0], ...whole },
      {
        c: 'b',
        i: images[2],
        n: 2,
        last: 20,
        mode: 'exec',
        libs: false,
        covered: false,
        since: 100 * HOUR,
        reason: 'libraries_not_tracked',
      },
    ]
    assert.deepEqual([...(await ask(null, null))], [a, b0, b2])
    assert.deepEqual([...(await ask('b', null))], [b0, b2])
    assert.deepEqual([...(await ask(null, images[1]!))], [a])
    assert.deepEqual([...(await ask('b', images[2]!))], [b2])
    assert.deepEqual([...(await ask('B', null))], [])
    assert.equal((await ask(null, null, 26))[0]!.c, 'B')
  }))

test('the result does not depend on the search path, time zone, date style or planner settings of the session', async () => {
  const ns = namespace()
  await instance(sql, { pod_namespace: ns })
  const [{ schema }] = await sql<[{ schema: string }]>`select current_schema() as schema`
  await frozen(async (on) => {
    for (const setting of [
      "search_path = ''",
      "timezone = 'Asia/Tokyo'",
      "datestyle = 'SQL, DMY'",
      'enable_indexscan = off',
      'enable_nestloop = off',
      'plan_cache_mode = force_custom_plan',
      'transform_null_equals = on',
    ])
      await on.unsafe(`set local ${setting}`)
    const [row] = await on.unsafe(
      `select * from ${schema}.kg_runtime_coverage('primary', '${ns}', 'Deployment', 'web', 'app', '${digest('app')}', 24)`,
    )
    assert.deepEqual([row!.covered, row!.reason], [true, null])
  })
})

test('a role with SELECT on the three tables may call the function', async () => {
  const ns = namespace()
  await instance(sql, { pod_namespace: ns })
  const role = `reader_${Date.now()}`
  await sql.begin(async (on) => {
    await on.unsafe(
      `create role ${role}; grant select on pod, runtime_coverage, runtime_executable to ${role}; set local role ${role}`,
    )
    assert.equal((await coverage(on as unknown as Sql, { namespace: ns })).covered, true)
    await on.unsafe(`reset role; drop owned by ${role}; drop role ${role}`)
  })
})
