import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { chains } from '../../jobs/index.ts'
import { seccompDenialRetention } from '../../jobs/seccomp-denial-retention.ts'
import { denial, take, unique } from '../seccomp/drains.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { abortedAfter, inside, startScene, waiting } from './scene.ts'

const DAY = 86_400
const BATCH_ROWS = 100
const scene = await startScene(seccompDenialRetention, { seccompDenialsBatchSize: BATCH_ROWS })
const { ago, run, count, sql, pod } = scene
const { config } = scene.context()

beforeEach(async () => {
  await sql`truncate seccomp_denial, seccomp_denial_node, seccomp_node, seccomp_file, seccomp_file_set, pod, pod_address`
})

const withDays = (seccompDenialsRetentionDays: number, more: Partial<typeof config> = {}) => ({
  config: { ...config, seccompDenialsRetentionDays, ...more },
})

interface Stored {
  pod?: string
  namespace?: string
  days?: number
  owner?: [kind: string | null, name: string | null]
}

/** Stores denials of these syscalls, by default of a known workload and seen now. */
const store = async (all: Record<string, Stored>) => {
  for (const [
    syscall,
    { pod = 'p', namespace = 'shop', days = 0, owner: [kind, name] = ['Deployment', 'web'] },
  ] of Object.entries(all))
    await sql`
      insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, node_name, syscall, action, count, first_seen, last_seen)
      values ('uid', ${pod}, ${namespace}, ${kind}, ${name}, 'node', ${syscall}, 'a', 1, ${ago(400 * DAY)}, ${ago(days * DAY)})`
}
/** Stores denials, each seen a second earlier than the one before, from `days` days ago. */
const many = (rows: number, days: number, owner: string | null = 'web') => sql`
  insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
  select 'uid-' || n, 'pod-' || n, 'ns-' || n % 3, ${owner === null ? null : 'Deployment'}, ${owner}, 's', 'a', 1, t, t
  from (select n, ${ago(days * DAY)}::text::timestamp - n * interval '1 s' as t from generate_series(1, ${rows}::int) n) n`
const left = async () =>
  (await sql<{ s: string }[]>`select syscall as s from seccomp_denial order by 1`).map(({ s }) => s)
const total = async () => (await sql<{ n: number }[]>`select count(*)::int as n from seccomp_denial`)[0]!.n
const owners = async () =>
  Object.fromEntries(
    (
      await sql<
        { s: string; k: string; w: string }[]
      >`select syscall as s, workload_kind as k, workload_name as w from seccomp_denial`
    ).map(({ s, k, w }) => [s, `${k}/${w}`]),
  )
const NONE: [null, null] = [null, null]

test('the job runs at the configured interval, first after 120 seconds, in a chain of its own, also with 0 days', () => {
  assert.equal(seccompDenialRetention.firstAfterSecs, 120)
  for (const days of [0, 30])
    assert.equal(seccompDenialRetention.everySecs(withDays(days, { seccompDenialsIntervalSecs: 77 }).config), 77)
  assert.deepEqual(
    chains.filter((chain) => chain.includes(seccompDenialRetention)),
    [[seccompDenialRetention]],
  )
})

describe('attribution', () => {
  test('a denial without a workload gets that of its pod, once known, by the rule of ingest; the others stay unchanged', async () => {
    const { pod_name: owned } = await pod()
    const { pod_name: bare } = await pod({ workload_kind: null, workload_name: null })
    const { pod_name: half } = await pod({ workload_name: null })
    const { pod_name: nowhere } = await pod({ pod_namespace: null })
    await store({
      owned: { pod: owned, owner: NONE },
      'kind alone': { pod: owned, owner: ['Job', null] },
      'name alone': { pod: owned, owner: [null, 'x'] },
      bare: { pod: bare, owner: NONE },
      half: { pod: half, owner: NONE },
      nowhere: { pod: nowhere, namespace: 'any', owner: NONE },
      elsewhere: { pod: owned, namespace: 'other', owner: NONE },
      ghost: { pod: 'ghost', owner: NONE },
      known: { pod: owned, owner: ['Job', 'kept'] },
    })
    assert.equal(await count(withDays(0)), 5)
    assert.deepEqual(await run(withDays(0)), { outcome: 'done', rows: 5, batches: 1 })
    assert.deepEqual(await owners(), {
      owned: 'Deployment/web',
      'kind alone': 'Deployment/web',
      'name alone': 'Deployment/web',
      bare: `Pod/${bare}`,
      half: 'null/null',
      nowhere: 'Deployment/web',
      elsewhere: 'null/null',
      ghost: 'null/null',
      known: 'Job/kept',
    })
    assert.equal(await count(withDays(0)), 0)
    assert.equal((await run(withDays(0))).rows, 0)
  })

  test('denials are attributed before old ones are deleted', async () => {
    const { pod_name } = await pod()
    await store({ young: { pod: pod_name, owner: NONE }, old: { pod: pod_name, owner: NONE, days: 31 } })
    const pass = await run()
    assert.deepEqual([pass.outcome, pass.rows], ['done', 3])
    assert.deepEqual(await owners(), { young: 'Deployment/web' })
  })

  test('batches have the configured size over all namespaces, whether pods are known or not', async () => {
    await many(3 * BATCH_ROWS, 0, null)
    assert.deepEqual(await run(withDays(0)), { outcome: 'done', rows: 0, batches: 4 })
    for (const n of [1, 150, 300]) await pod({ pod_name: `pod-${n}`, pod_namespace: `ns-${n % 3}` })
    assert.deepEqual(await run(withDays(0)), { outcome: 'done', rows: 3, batches: 4 })
    assert.deepEqual(await run(withDays(0, { seccompDenialsBatchSize: 1_000 })), {
      outcome: 'done',
      rows: 0,
      batches: 1,
    })
  })

  test('a denial that a drain is writing is skipped without waiting', async () => {
    const { pod_name } = await pod()
    await store({ written: { pod: pod_name, owner: NONE }, other: { pod: pod_name, owner: NONE } })
    await sql.begin(async (post) => {
      await post`select from seccomp_denial where syscall = 'written' for update`
      assert.equal((await run(withDays(0))).rows, 1)
    })
    assert.deepEqual(await owners(), { written: 'null/null', other: 'Deployment/web' })
    assert.equal((await run(withDays(0))).rows, 1)
  })

  test('a denial that a drain attributes during the pass stays unchanged', async () => {
    const { pod_name } = await pod()
    await store({ a: { pod: pod_name, owner: NONE } })
    // The pass waits after it has found the row, before it locks it.
    await sql.unsafe('alter function denial_workload(text, text) rename to denial_workload_at_once')
    await sql.unsafe(`
      create function denial_workload(of_pod text, of_namespace text) returns table (kind text, name text) language plpgsql
      as $$ begin perform pg_advisory_xact_lock(78); return query select * from denial_workload_at_once(of_pod, of_namespace); end $$`)
    try {
      let pass: ReturnType<typeof run> | undefined
      await sql.begin(async (other) => {
        await other`select pg_advisory_xact_lock(78)`
        pass = run(withDays(0))
        await until('the pass waits', async () => (await waiting(sql)) > 0)
        await sql`update seccomp_denial set workload_kind = 'Job', workload_name = 'posted'`
      })
      assert.equal((await pass!).rows, 0)
      assert.deepEqual(await owners(), { a: 'Job/posted' })
    } finally {
      await sql.unsafe('drop function denial_workload(text, text)')
      await sql.unsafe('alter function denial_workload_at_once(text, text) rename to denial_workload')
    }
  })
})

describe('denials', () => {
  test('denials not seen for 30 days are deleted, with or without a workload; those that began earlier and continue stay', async () => {
    await store({
      old: { days: 31 },
      murky: { days: 31, owner: NONE },
      young: { days: 29 },
      now: {},
      unknown: { owner: NONE },
    })
    assert.equal(config.seccompDenialsRetentionDays, 30)
    assert.equal(await count(), 2)
    const pass = await run()
    assert.deepEqual([pass.outcome, pass.rows], ['done', 2])
    assert.deepEqual(await left(), ['now', 'unknown', 'young'])
    assert.equal((await run()).rows, 0)
  })

  test('the configuration sets the number of days; 0 days keep all denials', async () => {
    await store({ a: { days: 4_000 }, b: { days: 3 } })
    assert.equal(await count(withDays(0)), 0)
    assert.equal((await run(withDays(0))).rows, 0)
    assert.equal((await run(withDays(4))).rows, 1)
    assert.equal((await run(withDays(2))).rows, 1)
  })

  test('a denial exactly 30 days old stays, one a microsecond older is deleted', async () => {
    await sql.begin(async (now) => {
      for (const [name, age] of Object.entries({ at: '30 days', past: '30 days 0.000001 s', ahead: '-60 s' }))
        await now`
          insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
          select 'uid', 'p', 'shop', 'Job', 'j', ${name}, 'a', 1, t, t from (select now() at time zone 'utc' - ${age}::text::interval as t) t`
      assert.equal(await count({ db: inside(now) }), 1)
      assert.equal((await run({ db: inside(now) })).rows, 1)
    })
    assert.deepEqual(await left(), ['ahead', 'at'])
  })

  test('batches have the configured size, also when all denials have the same time', async () => {
    await many(2 * BATCH_ROWS + 1, 31)
    await sql`update seccomp_denial set last_seen = ${ago(31 * DAY)}`
    const pass = await run()
    assert.deepEqual([pass.outcome, pass.rows, await total()], ['done', 2 * BATCH_ROWS + 1, 0])
    // One to attribute, three to delete, and one each for the two tables of nodes and for file sets.
    assert.equal(pass.batches, 1 + 3 + 3)
  })

  test('denials that another transaction has locked are skipped, even a whole batch', async () => {
    await many(BATCH_ROWS + 10, 31)
    await sql.begin(async (post) => {
      await post`select from seccomp_denial order by last_seen limit ${BATCH_ROWS} for update`
      assert.equal((await run()).rows, 10)
    })
    assert.equal(await total(), BATCH_ROWS)
  })

  test('a denial that is seen again after the pass found it, before its deletion, stays', async () => {
    const again = { podName: 'again', podUid: 'uid', syscall: 'again', action: 'a' }
    await store({ again: { days: 31, pod: 'again' }, old: { days: 31 } })
    const pass = await scene.whileDeleting('seccomp_denial', 'before', () => take(scene, [denial(again)]))
    assert.equal(pass.rows, 1)
    assert.deepEqual(await left(), ['again'])
    assert.equal((await sql`select count from seccomp_denial`)[0]!.count, '2')
  })

  test('a denial that is seen again while it is being deleted is stored as a new row', async () => {
    const again = { podName: 'again', podUid: 'uid', syscall: 'again', action: 'a', count: 7 }
    await store({ again: { days: 31, pod: 'again' } })
    let taken: Promise<unknown> | undefined
    await scene.whileDeleting('seccomp_denial', 'after', async () => {
      taken = take(scene, [denial(again)])
      await until('the drain waits', async () => (await waiting(sql)) > 1)
    })
    await taken
    assert.equal((await sql`select count from seccomp_denial`)[0]!.count, '7')
  })
})

describe('nodes', () => {
  const drained = (all: Record<string, number>) =>
    Promise.all(
      Object.entries(all).map(
        ([name, days]) => sql`insert into seccomp_denial_node values (${name}, true, 10, '{}', ${ago(days * DAY)})`,
      ),
    )
  const denialNodes = async () =>
    (await sql<{ n: string }[]>`select node_name as n from seccomp_denial_node order by 1`).map(({ n }) => n)
  /** Stores a node that reported the files of `set` `days` days ago. */
  const told = async (name: string, days: number, set: string) => {
    await sql`insert into seccomp_file_set values (${Buffer.from(set)}) on conflict do nothing`
    await sql`insert into seccomp_file values (${`${set}.json`}, ${Buffer.from(set)}, 'h') on conflict do nothing`
    await sql`insert into seccomp_node values (${name}, ${Buffer.from(set)}, ${ago(days * DAY)})`
  }
  const profileNodes = async () =>
    (await sql<{ n: string }[]>`select node_name as n from seccomp_node order by 1`).map(({ n }) => n)
  const sets = async () =>
    (await sql<{ id: Buffer }[]>`select id from seccomp_file_set order by 1`).map(({ id }) => id.toString())
  const files = async () =>
    (await sql<{ p: string }[]>`select path as p from seccomp_file order by 1`).map(({ p }) => p)

  test('a node that drained nothing for 30 days is deleted, and its denials stay', async () => {
    await drained({ old: 31, young: 29, now: 0 })
    await store({ a: {} })
    assert.equal(await count(), 1)
    assert.equal((await run()).rows, 1)
    assert.deepEqual(await denialNodes(), ['now', 'young'])
    assert.deepEqual(await left(), ['a'])
  })

  test('0 days keep nodes and sets of files', async () => {
    await drained({ old: 4_000 })
    await told('old', 4_000, 'set')
    await sql`insert into seccomp_file_set values ('unused')`
    assert.equal(await count(withDays(0)), 0)
    assert.deepEqual(await run(withDays(0)), { outcome: 'done', rows: 0, batches: 1 })
    assert.deepEqual([await denialNodes(), await profileNodes(), await sets()], [['old'], ['old'], ['set', 'unused']])
  })

  test('a node that reported no files for 30 days is deleted, and a file set with its last node', async () => {
    await told('old-1', 31, 'shared')
    await told('young', 29, 'shared')
    await told('old-2', 31, 'own')
    await told('old-3', 40, 'own')
    assert.equal(await count(), 4)
    assert.equal((await run()).rows, 4)
    assert.deepEqual([await profileNodes(), await sets(), await files()], [['young'], ['shared'], ['shared.json']])
  })

  test('a node stays while it is not stale, if that is longer than the retention; without a stale limit it stays forever', async () => {
    await told('a', 5, 'a')
    await told('b', 3, 'b')
    assert.equal(await count(withDays(1, { seccompNodeStaleSecs: 0 })), 0)
    assert.equal((await run(withDays(1, { seccompNodeStaleSecs: 0 }))).rows, 0)
    assert.equal(await count(withDays(1, { seccompNodeStaleSecs: 4 * DAY })), 2)
    assert.equal((await run(withDays(1, { seccompNodeStaleSecs: 4 * DAY }))).rows, 2)
    assert.deepEqual([await profileNodes(), await sets()], [['b'], ['b']])
    assert.equal((await run(withDays(1, { seccompNodeStaleSecs: 900 }))).rows, 2)
  })

  test('a node that another transaction has locked is skipped, with its file set', async () => {
    await drained({ old: 31, other: 31 })
    await told('old', 31, 'a')
    await sql.begin(async (post) => {
      await post`select from seccomp_denial_node where node_name = 'old' for update`
      await post`select from seccomp_node for update`
      assert.equal((await run()).rows, 1)
    })
    assert.deepEqual([await denialNodes(), await profileNodes(), await sets()], [['old'], ['old'], ['a']])
  })

  test('a node that drains after the pass found it, before its deletion, stays', async () => {
    await drained({ back: 31, old: 31 })
    const pass = await scene.whileDeleting('seccomp_denial_node', 'before', () => take(scene, [], { node: 'back' }))
    assert.equal(pass.rows, 1)
    assert.deepEqual(await denialNodes(), ['back'])
  })

  test('a file set that a node reports after the pass found it stays', async () => {
    await sql`insert into seccomp_file_set values ('a'), ('b')`
    await sql.unsafe('alter function drop_file_sets(bytea[]) rename to drop_file_sets_at_once')
    await sql.unsafe(`
      create function drop_file_sets(ids bytea[]) returns integer language plpgsql
      as $$ begin perform pg_advisory_xact_lock(78); return drop_file_sets_at_once(ids); end $$`)
    try {
      let pass: ReturnType<typeof run> | undefined
      await sql.begin(async (other) => {
        await other`select pg_advisory_xact_lock(78)`
        pass = run()
        await until('the pass waits', async () => (await waiting(sql)) > 0)
        await told('node', 0, 'a')
      })
      assert.equal((await pass!).rows, 1)
      assert.deepEqual(await sets(), ['a'])
    } finally {
      await sql.unsafe('drop function drop_file_sets(bytea[])')
      await sql.unsafe('alter function drop_file_sets_at_once(bytea[]) rename to drop_file_sets')
    }
  })

  test('a file set of a node in an open transaction is skipped', async () => {
    await sql`insert into seccomp_file_set values ('a'), ('b')`
    await sql.begin(async (post) => {
      await post`insert into seccomp_node values ('node', 'a', now() at time zone 'utc')`
      assert.equal((await run()).rows, 1)
    })
    assert.deepEqual(await sets(), ['a'])
  })

  test('unused file sets are all deleted, though there are more sets than a batch has', async () => {
    await sql`insert into seccomp_file_set select decode(lpad(to_hex(n), 4, '0'), 'hex') from generate_series(1, 250) n`
    await sql`insert into seccomp_node select 'node-' || n, decode(lpad(to_hex(n), 4, '0'), 'hex'), now() at time zone 'utc' from generate_series(1, 250, 50) n`
    assert.equal(await count(), 245)
    assert.equal((await run()).rows, 245)
    assert.equal((await sets()).length, 5)
  })

  test('expired nodes are all deleted, though they exceed a batch', async () => {
    await sql`insert into seccomp_denial_node select 'node-' || n, true, 10, '{}', ${ago(31 * DAY)} from generate_series(1, 5001) n`
    assert.equal((await run()).rows, 5_001)
    assert.deepEqual(await denialNodes(), [])
  })
})

test('two processes at once delete every denial once', async (t) => {
  await many(1_000, 31)
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 1_000)
  assert.equal(await total(), 0)
})

test('with the lock held elsewhere it reports skipped and does nothing', async () => {
  await many(2, 31)
  await scene.whileLocked('seccomp-denial-retention', async () => {
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 })
    assert.deepEqual(await run(withDays(0)), { outcome: 'skipped', rows: 0, batches: 0 })
    assert.equal(await count(), 2)
  })
  assert.equal(await total(), 2)
})

test('a pass aborted between two batches keeps its deletions, and the next pass does the rest', async () => {
  await many(BATCH_ROWS + 2, 31)
  const pass = await run(abortedAfter(2, scene.db))
  assert.deepEqual([pass.outcome, pass.rows], ['aborted', BATCH_ROWS])
  assert.equal((await run()).rows, 2)
})

test('a pass deletes at most 200 batches of denials, the oldest first, and then deletes nodes', async () => {
  await many(205, 31)
  await sql`insert into seccomp_denial_node values ('old', true, 10, '{}', ${ago(31 * DAY)})`
  const pass = await run(withDays(30, { seccompDenialsBatchSize: 1 }))
  assert.deepEqual([pass.outcome, pass.rows], ['capped', 201])
  assert.equal((await sql<{ n: number }[]>`select max(substr(pod_uid, 5)::int)::int as n from seccomp_denial`)[0]!.n, 5)
})

test('counting changes nothing', async () => {
  const { pod_name } = await pod()
  await store({ old: { days: 31 }, young: {}, known: { pod: pod_name, owner: NONE } })
  assert.equal(await count(), 2)
  assert.deepEqual(await left(), ['known', 'old', 'young'])
  assert.equal((await owners()).known, 'null/null')
})

test('no count is lost when denials are posted during a pass', { timeout: 900_000 }, async (t) => {
  const names = Array.from({ length: 30 }, () => unique('raced'))
  const db = scene.otherProcess(t)
  for (let round = 0; round < 5; round++) {
    await sql`truncate seccomp_denial`
    // An old denial without a workload: the pass attributes or deletes it while it is posted again.
    for (const podName of names) await store({ [podName]: { pod: podName, days: 31, owner: NONE } })
    if (round === 0) for (const pod_name of names) await pod({ pod_name })
    const fields = (podName: string) => ({ podUid: 'uid', podName, syscall: podName, action: 'a', count: 10 })
    await Promise.all([run({ db }), ...names.map((name) => take(scene, [denial(fields(name))], { node: name }))])
    const rows = await sql<
      { s: string; n: number; k: string }[]
    >`select syscall as s, count::int as n, workload_kind as k from seccomp_denial`
    assert.deepEqual(rows.map(({ s }) => s).sort(), [...names].sort())
    for (const { n, k } of rows) assert.deepEqual([n === 10 || n === 11, k], [true, 'Deployment'])
  }
})

test('a pass leaves exactly the young denials, with the workloads of known pods', {
  timeout: 900_000,
}, async () => {
  const stored = fc.record({
    days: fc.constantFrom(0, 2.9, 3.1, 6.9, 7.1, 400),
    owner: fc.constantFrom<[string | null, string | null]>(['Job', 'j'], NONE, ['Job', null]),
    pod: fc.constantFrom('none', 'owned', 'bare', 'half', 'foreign'),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(stored, { maxLength: 15 }),
      fc.constantFrom(0, 3, 7),
      fc.integer({ min: 1, max: 4 }),
      async (all, days, batch) => {
        await sql`truncate seccomp_denial, pod, pod_address`
        for (const [n, one] of all.entries()) {
          const name = `pod-${n}`
          if (one.pod !== 'none')
            await pod({
              pod_name: name,
              pod_namespace: one.pod === 'foreign' ? 'elsewhere' : 'shop',
              ...(one.pod === 'bare' && { workload_kind: null, workload_name: null }),
              ...(one.pod === 'half' && { workload_kind: null }),
            })
          await store({ [`s-${n}`]: { ...one, pod: name } })
        }
        const shown = ({ owner: [kind, name], pod: of }: (typeof all)[number], n: number) => {
          if (kind !== null && name !== null) return `${kind}/${name}`
          return of === 'owned' ? 'Deployment/web' : of === 'bare' ? `Pod/pod-${n}` : `${kind}/${name}`
        }
        const expected = Object.fromEntries(
          all.flatMap((one, n) => (days === 0 || one.days <= days ? [[`s-${n}`, shown(one, n)]] : [])),
        )
        const changes = withDays(days, { seccompDenialsBatchSize: batch })
        const counted = await count(changes)
        const pass = await run(changes)
        assert.deepEqual([pass.outcome, pass.rows], ['done', counted])
        assert.deepEqual(await owners(), expected)
        assert.equal((await run(changes)).rows, 0)
      },
    ),
    { numRuns: depth(6, 60) },
  )
})
