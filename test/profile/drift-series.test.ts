import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createAdmin } from '../../lib/app/admin.ts'
import { DriftSeries, MAX_SERIES, readDrift, watchDrift } from '../../lib/profile/drift-series.ts'
import { MAX_SNAPSHOT_RULES } from '../../lib/profile/snapshot.ts'
import { startApp } from '../support/app.ts'
import { stopClock } from '../support/clock.ts'
import { storeState, toDatabase, workload } from '../support/profile-versions.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const { sql, db, deps } = app
const NAME = 'svc_workload_drift'

const samples = (text: string) => text.split('\n').filter((line) => /^\w+_workload_drift/.test(line))
const shown = async () => {
  await readDrift(db, deps.drift, deps.metrics)
  return samples((await app.get('/metrics')).text)
}
const drifts = (name: string, byType: Record<string, number>, namespace = 'shop') =>
  storeState(db.job, workload(namespace, name), {
    summary: { drift: { byType, count: Object.values(byType).reduce((a, b) => a + b, 0) } },
  })

beforeEach(async () => {
  await sql`truncate workload_profile, workload_profile_version`
})

test('a series for each type of drift that a workload has, in the order of keys, and none for 0', async () => {
  assert.deepEqual(await shown(), [])
  await drifts('web', { unshippedExecutable: 1, tagMoved: 2 })
  await drifts('api', { tagMoved: 3 })
  await drifts('calm', {})
  await drifts('a"\\\n', { securityContextRegression: 1 }, 'a')
  const of = (workload: string, type: string) =>
    `${NAME}{workload_namespace="shop",workload_kind="Deployment",workload="${workload}",type="${type}"}`
  assert.deepEqual(await shown(), [
    `${NAME}{workload_namespace="a",workload_kind="Deployment",workload="a\\"\\\\\\n",type="securityContextRegression"} 1`,
    `${of('api', 'tagMoved')} 3`,
    `${of('web', 'tagMoved')} 2`,
    `${of('web', 'unshippedExecutable')} 1`,
  ])
  await drifts('web', {})
  await sql`delete from workload_profile where workload_name = 'api'`
  assert.equal((await shown()).length, 1)
})

test('where names of workloads are hidden, sums by type, over all of them', async () => {
  const hidden = await startApp({ METRICS_WORKLOAD_LABELS: 'admin', WIRE_NAMES: 'kguardian' })
  for (const name of ['a', 'b']) {
    await storeState(hidden.db.job, workload('shop', name), {
      summary: { drift: { byType: { tagMoved: 2 }, count: 2 } },
    })
  }
  await readDrift(hidden.db, hidden.deps.drift, hidden.deps.metrics)
  assert.deepEqual(samples((await hidden.get('/metrics')).text), ['kguardian_workload_drift{type="tagMoved"} 4'])
  const admin = await (await createAdmin(hidden.deps).request('/metrics')).text()
  assert.equal(samples(admin).length, 2)
})

test(`at most ${MAX_SERIES} series, the first in the order of keys; the sums count all`, async () => {
  await sql`
    insert into workload_profile
    select 'primary', 'shop', 'Deployment', 'w-' || lpad(n::text, 5, '0'), 1, 'h', 'ok', '{"drift":{"byType":{"tagMoved":1}}}', true, false,
           now() at time zone 'utc', now() at time zone 'utc'
    from generate_series(1, ${MAX_SERIES + 2}::int) n`
  const lines = await shown()
  assert.equal(lines.length, MAX_SERIES)
  assert.ok(lines[0]!.includes('w-00001') && lines.at(-1)!.includes(`w-0${MAX_SERIES}`))
  assert.deepEqual(samples(deps.drift.text(false)), [`${NAME}{type="tagMoved"} ${MAX_SERIES + 2}`])
})

test('workloads whose rules do not all fit into a snapshot are counted', async () => {
  const full = async () => {
    await shown()
    return /^broker_profiles_full_snapshots (\d+)$/m.exec((await app.get('/metrics')).text)?.[1]
  }
  await drifts('web', {})
  assert.equal(await full(), '0')
  const rules = Array.from({ length: MAX_SNAPSHOT_RULES }, (_, port) => ({ ...toDatabase, port }))
  await storeState(db.job, workload('shop', 'busy'), { snapshot: { network: { rules } } })
  assert.equal(await full(), '1')
})

test('it is read 75 seconds after the start, then every minute; after a failure it keeps its values', async (t) => {
  await drifts('web', { tagMoved: 1 })
  const series = new DriftSeries('spec')
  const clock = stopClock(t)
  let reads = 0
  let isBroken = false
  const job = async (statement: Parameters<typeof db.job>[0]) => {
    reads++
    if (isBroken) throw new Error('broken')
    return db.job(statement)
  }
  const { stop } = watchDrift({ db: { job } as unknown as typeof db, series, metrics: deps.metrics, log: deps.log })
  clock.tick(74_999)
  assert.equal(reads, 0)
  clock.tick(1)
  await until('it was read', async () => samples(series.text()).length === 1)
  isBroken = true
  await drifts('web', {})
  clock.tick(59_999)
  assert.equal(reads, 1)
  await until('the failure was noted', async () => {
    clock.tick(1)
    return reads === 2
  })
  assert.equal(samples(series.text()).length, 1)
  isBroken = false
  await until('it was read again', async () => {
    clock.tick(60_000)
    return samples(series.text()).length === 0
  })
  stop()
  const lastReads = reads
  clock.tick(600_000)
  assert.equal(reads, lastReads)
})
