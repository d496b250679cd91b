/** The number of workloads with denials, counted independently of requests (docs/contract.md#denials). */
import assert from 'node:assert/strict'
import { beforeEach, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import type { Database } from '../../lib/db/index.ts'
import { createMetrics } from '../../lib/metrics/index.ts'
import { countWorkloads, watchDenialWorkloads } from '../../lib/seccomp/denials/index.ts'
import { startApp } from '../support/app.ts'
import { metric, startBroker } from '../support/broker.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'

/** Rows of a look-up in an index of three levels, and of namespaces whose denials are not attributed. */
const MAX_PAGES_PER_WORKLOAD = 12
const app = await startApp()
const { sql, db } = app
const { log } = app.deps

beforeEach(async () => {
  await sql`truncate seccomp_denial`
})

type Owner = [namespace: string, kind: string | null, name: string | null]

const store = (owners: Owner[]) => sql`
  insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
  select 'uid', 'pod', o ->> 0, o ->> 1, o ->> 2, n::text, 'a', 1, now(), now()
  from json_array_elements(${JSON.stringify(owners)}::text::json) with ordinality o(o, n)`

const gauge = async (metrics: ReturnType<typeof createMetrics>) =>
  (await metrics.denialWorkloads.get()).values[0]!.value

/** Starts the count, and stops it with the test; `asked` counts the queries. */
function watch(t: TestContext, everyMs: number, job?: Database['job']) {
  const metrics = createMetrics()
  const seen = { metrics, asked: 0, stop: () => {} }
  const counting = (async (statement: never) => {
    seen.asked++
    return (job ?? db.job)(statement)
  }) as unknown as Database['job']
  const { stop } = watchDenialWorkloads({ db: { job: counting } as Database, metrics, log, everyMs })
  t.after(stop)
  seen.stop = stop
  return seen
}

test('workloads are distinguished by namespace, kind and name; denials without one do not count', async () => {
  assert.equal(await countWorkloads(db), 0)
  await store([
    ['a', 'Job', 'x'],
    ['a', 'Job', 'x'],
    ['a', 'Job', 'y'],
    ['a', 'Pod', 'x'],
    ['b', 'Job', 'x'],
    ['b', null, null],
    ['c', null, null],
    ['c', 'Job', null],
    ['c', null, 'x'],
    ['d', 'Job', 'x'],
  ])
  assert.equal(await countWorkloads(db), 5)
})

test('the count equals a plain count of all rows', { timeout: 900_000 }, async () => {
  const word = fc.constantFrom('a', 'b', 'B', 'é', '')
  const owner = fc.tuple(word, fc.option(word, { freq: 3 }), fc.option(word, { freq: 3 }))
  await fc.assert(
    fc.asyncProperty(fc.array(owner, { maxLength: 30 }), async (owners) => {
      await sql`truncate seccomp_denial`
      await store(owners)
      const expected = new Set(
        owners.filter(([, kind, name]) => kind !== null && name !== null).map((one) => one.join('\0')),
      )
      assert.equal(await countWorkloads(db), expected.size)
    }),
    { numRuns: depth(12, 60) },
  )
})

test('the count reads one index entry for each workload, not each row', async () => {
  await sql`truncate seccomp_denial`
  await store([['ns-0', null, null]])
  await sql`analyze seccomp_denial`
  await sql`delete from seccomp_denial`
  await sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
    select 'uid-' || n, 'pod', 'ns-' || n % 3, case when n % 10 > 0 then 'Job' end, case when n % 10 > 0 then 'w-' || n % 7 end, 's', 'a', 1, now(), now()
    from generate_series(1, 20000) n`
  for (const analyze of [false, true]) {
    if (analyze) await sql`vacuum analyze seccomp_denial`
    let text = ''
    const explaining = (async (statement: (of: typeof sql) => PromiseLike<unknown>) => {
      const rows = await db.job(
        (of) => of`explain (analyze, buffers, format json, timing off) ${statement(of as never) as never}`,
      )
      text = JSON.stringify(rows)
      return db.job(statement as never)
    }) as unknown as Database['job']
    assert.equal(await countWorkloads({ job: explaining } as Database), 21)
    assert.doesNotMatch(text, /Seq Scan/)
    const plan = JSON.parse(text)[0]['QUERY PLAN'][0].Plan
    const pages = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    assert.ok(pages <= 21 * MAX_PAGES_PER_WORKLOAD, `${pages} pages`)
  }
})

test('the gauge is updated from the start on', async (t) => {
  await store([['a', 'Job', 'x']])
  const { metrics } = watch(t, 20)
  await until('it is counted', async () => (await gauge(metrics)) === 1)
  await store([['b', 'Job', 'x']]).catch(() => {})
  await sql`update seccomp_denial set workload_name = 'y'`
  await sql`truncate seccomp_denial`
  await until('it is counted again', async () => (await gauge(metrics)) === 0)
})

test('there is one query at a time, and another after a failure, during which the gauge keeps its value', async (t) => {
  await store([['a', 'Job', 'x']])
  let underWay = 0
  let most = 0
  let isFailing = false
  const job = (async (statement: never) => {
    most = Math.max(most, ++underWay)
    try {
      await delay(5)
      if (isFailing) throw new Error('no database')
      return await db.job(statement)
    } finally {
      underWay--
    }
  }) as unknown as Database['job']
  const seen = watch(t, 1, job)
  await until('it is counted', async () => (await gauge(seen.metrics)) === 1)
  isFailing = true
  const { asked } = seen
  await until('it has failed', () => seen.asked >= asked + 3)
  assert.equal(await gauge(seen.metrics), 1)
  isFailing = false
  await sql`truncate seccomp_denial`
  await until('it is counted again', async () => (await gauge(seen.metrics)) === 0)
  assert.equal(most, 1)
})

test('there is a pause between queries, and none after the stop, also during a query', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let answer = () => {}
  const job = (() =>
    new Promise((resolve) => {
      answer = () => resolve([{ workloads: 7 }])
    })) as unknown as Database['job']
  const seen = watch(t, 15_000, job)
  const settle = async () => {
    answer()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(seen.asked, 1)
  await settle()
  assert.equal(await gauge(seen.metrics), 7)
  t.mock.timers.tick(14_999)
  assert.equal(seen.asked, 1)
  t.mock.timers.tick(1)
  assert.equal(seen.asked, 2)
  seen.stop()
  await settle()
  t.mock.timers.tick(1_000_000)
  assert.equal(seen.asked, 2)
})

test('a scrape does not start a count', async () => {
  await store([['a', 'Job', 'x']])
  const { text } = await app.get('/metrics')
  assert.match(text, /^svc_seccomp_denial_workloads 0$/m)
})

test('a server counts from its start on', { timeout: 900_000 }, async () => {
  await store([
    ['a', 'Job', 'x'],
    ['b', 'Job', 'x'],
  ])
  const broker = await startBroker({ databaseUrl: app.url })
  await until('it is counted', async () => (await metric(broker, 'svc_seccomp_denial_workloads')) === 2)
  assert.deepEqual(await broker.stop(), { code: 0, signal: null })
})
