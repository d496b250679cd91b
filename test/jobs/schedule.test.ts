import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mock, type TestContext, test } from 'node:test'
import { chains } from '../../jobs/index.ts'
import type { Job, JobContext, Pass } from '../../jobs/job.ts'
import type { JobName } from '../../jobs/locks.ts'
import { type ScheduleOptions, startSchedule } from '../../jobs/schedule.ts'
import { type Database, DatabaseUnavailable } from '../../lib/db/index.ts'
import { createMetrics } from '../../lib/metrics/index.ts'
import { program } from '../support/program.ts'
import { until } from '../support/until.ts'
import { isWaiting, startScene } from './scene.ts'

const scene = await startScene(chains[0]![0]!)
const { sql, logged } = scene
const DONE: Pass = { outcome: 'done', rows: 0, batches: 1 }

/** A job that records its runs. With `firstAfterSecs` 0 it first runs after the shortest delay, a second or two. */
function job(name: JobName, changes: Partial<Job> = {}) {
  const runs: JobContext[] = []
  const base: Job = {
    name,
    firstAfterSecs: 0,
    everySecs: () => 3600,
    run: async () => DONE,
    count: async () => 0,
    ...changes,
  }
  return {
    ...base,
    runs,
    run: async (context: JobContext) => {
      runs.push(context)
      return base.run(context)
    },
  }
}

function start(t: TestContext, list: readonly (readonly Job[])[], changes: Partial<ScheduleOptions> = {}) {
  const metrics = createMetrics()
  const { config, db, log } = scene.context()
  const schedule = startSchedule(list, { config, db, log, metrics, ...changes })
  t.after(() => schedule.stop(5_000))
  /** The samples of a metric for a job, without the label `job`. */
  const samples = async (name: string, of: JobName) => {
    const metric = await metrics.registry.getSingleMetric(name)!.get()
    return metric.values
      .filter(({ labels }) => labels.job === of)
      .map(({ labels: { job: _, ...labels }, value }) => ({ ...labels, value }))
  }
  return { ...schedule, samples }
}

/** A database that always answers that the job finished `agoSecs` seconds ago. */
const finished = (agoSecs: number) =>
  ({ job: async () => [{ finishedAt: 1, agoSecs, durationMs: 1, finished_at: 1 }] }) as unknown as Database
const longAgo = finished(1_000_000)

/** Stops timers and the clock; `tick` moves them on, and resolves when the work of the due timers is done. */
function stillTime(t: TestContext) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_800_000_000_000 })
  t.after(() => mock.timers.reset())
  return async (secs: number) => {
    for (let passed = 0; passed < secs * 1000; passed += 250) {
      mock.timers.tick(250)
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

const failing = async (): Promise<Pass> => {
  throw new Error('broken')
}

for (const [random, early, late] of [
  [0, 53, 2],
  [0.5, 59, 2],
  [1, 65, 2],
] as const) {
  test(`with an interval of 60 s and the random number ${random}, each pass starts ${early} to ${early + late} s after the start or the last pass`, async (t) => {
    const tick = stillTime(t)
    const { firstAfterSecs: _, ...plain } = job('late-resolve', { everySecs: () => 60 })
    start(t, [[plain]], { db: longAgo, random: () => random })
    await tick(early)
    assert.equal(plain.runs.length, 0)
    await tick(late)
    assert.equal(plain.runs.length, 1)
    await tick(early - 1)
    assert.equal(plain.runs.length, 1)
    await tick(late + 1)
    assert.equal(plain.runs.length, 2)
  })
}

test('the first pass of a job starts after its firstAfterSecs', async (t) => {
  const tick = stillTime(t)
  const one = job('audit-retention', { firstAfterSecs: 60 })
  start(t, [[one]], { db: longAgo, random: () => 0.5 })
  await tick(58)
  assert.equal(one.runs.length, 0)
  await tick(4)
  assert.equal(one.runs.length, 1)
})

test('the jobs of a chain run one after another, in order', async (t) => {
  const order: string[] = []
  const slow = (name: JobName) =>
    job(name, {
      run: async () => {
        order.push(`${name} begins`)
        await sql`select pg_sleep(0.05)`
        order.push(`${name} ends`)
        return DONE
      },
    })
  start(t, [[slow('audit-retention'), slow('dead-pod-retention')]])
  await until('both ran', () => order.length === 4)
  assert.deepEqual(order, [
    'audit-retention begins',
    'audit-retention ends',
    'dead-pod-retention begins',
    'dead-pod-retention ends',
  ])
})

test('in a chain with different intervals, the job with the shorter one runs when it is due', async (t) => {
  const tick = stillTime(t)
  const often = job('late-resolve', { everySecs: () => 600 })
  const seldom = job('stale-sweep', { everySecs: () => 3600 })
  start(t, [[often, seldom]], { db: longAgo, random: () => 0.5 })
  await tick(3)
  assert.equal(often.runs.length, 1)
  await tick(602)
  assert.equal(often.runs.length, 2)
})

test('a failed job is logged and counted, the next job of the chain runs, and the failed job runs again later', async (t) => {
  const tick = stillTime(t)
  logged.length = 0
  const bad = job('seccomp-denial-retention', { run: failing })
  const good = job('runtime-retention')
  const { samples } = start(t, [[bad, good]], { db: longAgo })
  await tick(3)
  assert.deepEqual([bad.runs.length, good.runs.length], [1, 1])
  const line = logged.find(({ msg }) => msg === 'the job failed')
  assert.deepEqual([line!.level, line!.job], [50, 'seccomp-denial-retention'])
  assert.deepEqual(await samples('broker_job_passes_total', 'seccomp-denial-retention'), [
    { outcome: 'failed', value: 1 },
  ])
  // The value of the last successful pass.
  assert.deepEqual(await samples('broker_job_last_success_timestamp_seconds', 'seccomp-denial-retention'), [
    { value: 1 },
  ])
  await tick(4000)
  assert.equal(bad.runs.length, 2)
})

test('without a database a pass fails with a warning, and the job runs at its next time', async (t) => {
  const tick = stillTime(t)
  logged.length = 0
  let isDown = true
  const ask = async () => {
    if (isDown) throw new DatabaseUnavailable('no connection', '57P01')
    return [{ finishedAt: 1, agoSecs: 9999, durationMs: 1, finished_at: 1 }]
  }
  const one = job('traffic-retention')
  const { samples } = start(t, [[one]], { db: { job: ask } as unknown as Database })
  await tick(3)
  assert.deepEqual(await samples('broker_job_passes_total', 'traffic-retention'), [{ outcome: 'failed', value: 1 }])
  assert.equal(logged.find(({ msg }) => msg === 'the job failed')!.level, 40)
  isDown = false
  await tick(4000)
  assert.equal(one.runs.length, 1)
})

test('a pass is recorded in the database and in the metrics', async (t) => {
  const one = job('compute-fold', { run: async () => ({ outcome: 'capped', rows: 7, batches: 2 }) })
  const { samples } = start(t, [[one]])
  await until('it is counted', async () => (await samples('broker_job_rows_total', 'compute-fold')).length > 0)
  const [row] = await sql`
    select duration_ms >= 0 as is_timed, rows::int, extract(epoch from finished_at)::float8 as finished_at,
           finished_at <= now() at time zone 'utc' as is_past
    from job_run where job = 'compute-fold'`
  assert.deepEqual([row!.is_timed, row!.rows, row!.is_past], [true, 7, true])
  assert.deepEqual(await samples('broker_job_last_success_timestamp_seconds', 'compute-fold'), [
    { value: row!.finished_at },
  ])
  assert.equal((await samples('broker_job_duration_seconds', 'compute-fold')).length, 1)
  assert.deepEqual(await samples('broker_job_rows_total', 'compute-fold'), [{ value: 7 }])
  assert.deepEqual(await samples('broker_job_passes_total', 'compute-fold'), [{ outcome: 'capped', value: 1 }])
})

test('a second pass replaces the record of the first', async (t) => {
  await sql`insert into job_run values ('compute-retention', now() at time zone 'utc' - interval '2 h', 5, 5)`
  const one = job('compute-retention')
  start(t, [[one]])
  await until('it is recorded', async () => {
    const [row] =
      await sql`select from job_run where job = 'compute-retention' and rows = 0 and finished_at > now() at time zone 'utc' - interval '1 h'`
    return row
  })
  assert.equal(one.runs.length, 1)
})

for (const outcome of ['skipped', 'aborted'] as const) {
  test(`a pass that was ${outcome} is not recorded`, async (t) => {
    const one = job('attestation-retention', { run: async () => ({ outcome, rows: 3, batches: 1 }) })
    const { samples } = start(t, [[one]])
    await until(
      'it is counted',
      async () => (await samples('broker_job_passes_total', 'attestation-retention')).length > 0,
    )
    assert.deepEqual(await samples('broker_job_passes_total', 'attestation-retention'), [{ outcome, value: 1 }])
    assert.deepEqual(await samples('broker_job_rows_total', 'attestation-retention'), [{ value: 3 }])
    assert.equal((await sql`select from job_run where job = 'attestation-retention'`).length, 0)
  })
}

test('a replica does not run a job that another replica ran within the interval, and its metrics show that pass', async (t) => {
  await sql`insert into job_run values ('version-check', now() at time zone 'utc' - interval '1000 s', 1500, 5)`
  const served = job('version-check')
  const { samples } = start(t, [[served]])
  const [shown] = await until('it has looked', async () => {
    const found = await samples('broker_job_last_success_timestamp_seconds', 'version-check')
    return found.length > 0 && found
  })
  const [row] = await sql`select extract(epoch from finished_at)::float8 as at from job_run where job = 'version-check'`
  assert.equal(shown!.value, row!.at)
  assert.deepEqual(await samples('broker_job_duration_seconds', 'version-check'), [{ value: 1.5 }])
  assert.equal(served.runs.length, 0)
})

for (const [agoSecs, runs] of [
  [3239, 0],
  [3240, 1],
  [9999, 1],
  [-50, 0],
  [-3239, 0],
  [-3240, 1],
] as const) {
  test(`with an interval of 3600 s, a job is ${runs === 0 ? 'not ' : ''}due ${agoSecs} s after its last pass`, async (t) => {
    const tick = stillTime(t)
    const one = job('image-inventory-retention')
    start(t, [[one]], { db: finished(agoSecs), random: () => 0.5 })
    await tick(3)
    assert.equal(one.runs.length, runs)
  })
}

test('a replica waits for the rest of the interval after the pass of another replica', async (t) => {
  const tick = stillTime(t)
  let agoSecs = 3000
  const ask = async () => [{ finishedAt: 1, agoSecs, durationMs: 1, finished_at: 1 }]
  const one = job('image-inventory-retention')
  start(t, [[one]], { db: { job: ask } as unknown as Database, random: () => 0.5 })
  await tick(3)
  agoSecs = 3600
  await tick(596)
  assert.equal(one.runs.length, 0)
  await tick(6)
  assert.equal(one.runs.length, 1)
})

for (const [aheadSecs, least, most] of [
  [1_000_000, 0, 3],
  [3_000, 3_600, 7_200],
] as const)
  test(`a last pass ${aheadSecs} s in the future, after the clock of the database was set back, delays the next by less than two intervals`, async (t) => {
    const tick = stillTime(t)
    const finished = Date.now() + 1000 * aheadSecs
    const ask = async () => [{ finishedAt: 1, agoSecs: (Date.now() - finished) / 1000, durationMs: 1, finished_at: 1 }]
    const one = job('image-inventory-retention')
    start(t, [[one]], { db: { job: ask } as unknown as Database, random: () => 0.5 })
    await tick(least)
    assert.equal(one.runs.length, 0)
    await tick(most - least)
    assert.equal(one.runs.length > 0, true)
  })

test('jobs run while the clock of the process stands still or is set back', async (t) => {
  // The timers move on, the clock does not.
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const one = job('late-resolve', { everySecs: () => 60 })
  start(t, [[one]], { db: longAgo, random: () => 0.5 })
  for (let secs = 0; secs < 125; secs++) {
    mock.timers.tick(1000)
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(one.runs.length, 3)
})

test('jobs that the configuration turns off are not scheduled', (t) => {
  const { config } = scene.context()
  const names = (changes: Partial<typeof config>) =>
    start(t, chains.slice(0, 1), { config: { ...config, ...changes } }).jobs
  assert.deepEqual(names({}), ['late-resolve', 'stale-sweep'])
  assert.deepEqual(names({ peerStaleAliveSecs: 0 }), ['late-resolve'])
  assert.deepEqual(names({ peerLateResolveWindowSecs: 0 }), ['stale-sweep'])
  assert.deepEqual(names({ peerLateResolveWindowSecs: 0, peerStaleAliveSecs: 0 }), [])
})

test('stopping aborts the current pass, waits for its end, and starts no other', async (t) => {
  let ended = false
  const long = job('supply-chain-refresh', {
    run: async ({ signal }) => {
      while (!signal.aborted) await sql`select pg_sleep(0.01)`
      await sql`select 1`
      ended = true
      return { outcome: 'aborted', rows: 0, batches: 1 }
    },
  })
  const next = job('version-check')
  const { stop } = start(t, [[long, next]])
  await until('it runs', () => long.runs.length > 0)
  await stop(20_000)
  assert.equal(ended, true)
  assert.equal(next.runs.length, 0)
})

test('stopping waits for a pass that does not end until its timeout, and no longer', async (t) => {
  const tick = stillTime(t)
  const stuck = job('supply-chain-refresh', { run: () => new Promise<Pass>(() => {}) })
  const schedule = startSchedule([[stuck]], { ...scene.context(), db: longAgo, metrics: createMetrics() })
  await tick(3)
  let hasStopped = false
  schedule.stop(10_000).then(() => {
    hasStopped = true
  })
  assert.equal(stuck.runs[0]!.signal.aborted, true)
  await tick(9.75)
  assert.equal(hasStopped, false)
  await tick(0.25)
  assert.equal(hasStopped, true)
})

test('a job never runs after the schedule was stopped', async (t) => {
  const tick = stillTime(t)
  const one = job('late-resolve', { firstAfterSecs: 5 })
  const { stop } = start(t, [[one]], { db: longAgo })
  await stop(1_000)
  await tick(60)
  assert.equal(one.runs.length, 0)
})

test('the schedule runs late-resolve and stale-sweep on stored rows', async (t) => {
  const { config } = scene.context()
  await scene.pod({ pod_name: 'peer', pod_ip: '10.0.0.2' })
  await scene.pod({ pod_name: 'gone', time_stamp: scene.ago(5000) })
  await sql`insert into traffic (uuid, traffic_in_out_ip, time_stamp) values ('flow', '10.0.0.2', ${scene.ago(5)}::text::timestamp)`
  const { samples } = start(t, chains.slice(0, 1), { config: { ...config, peerLateResolveIntervalSecs: 1 } })
  await until(
    'the sweep ran after the late pass',
    async () => (await samples('broker_job_rows_total', 'stale-sweep')).length > 0,
  )
  const [flow] = await sql`select peer_name from traffic`
  assert.equal(flow!.peer_name, 'peer')
  assert.equal((await scene.get('/pod/name/gone')).json.is_dead, true)
})

/** Starts the server on the database of this file; `printed()` returns its log so far. */
function startServer(t: TestContext, env: NodeJS.ProcessEnv) {
  const { PATH, HOME } = process.env
  const addresses = { LISTEN_ADDR: '127.0.0.1:0', ADMIN_ADDR: '127.0.0.1:0' }
  const child = spawn(process.execPath, program('lib/server.ts'), {
    env: { PATH, HOME, DATABASE_URL: scene.url, ...addresses, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  let log = ''
  child.stdout.on('data', (bytes) => {
    log += bytes
  })
  return { child, printed: () => log }
}

test('the server runs the jobs; on SIGTERM it finishes the current batch and exits with code 0', async (t) => {
  await sql`truncate job_run, traffic, pod, pod_address`
  await scene.pod({ pod_name: 'peer', pod_ip: '10.0.0.2' })
  await sql`
    insert into traffic (uuid, traffic_in_out_ip, time_stamp)
    select unnest(array['contested', 'free']), '10.0.0.2', ${scene.ago(5)}::text::timestamp`
  const { child, printed } = startServer(t, { PEER_LATE_RESOLVE_INTERVAL_SECS: '5' })
  await sql.begin(async (other) => {
    await other`update traffic set syn_retries = 1 where uuid = 'contested'`
    await until('a job waits for the row', () => isWaiting(sql))
    child.kill('SIGTERM')
    await until('it is stopping', () => printed().includes('"stopping"'))
    assert.equal(child.exitCode, null)
  })
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
  assert.match(printed(), /"job":"late-resolve","outcome":"done","rows":1,/)
  assert.equal((await sql`select from traffic where uuid = 'free' and peer_name = 'peer'`).length, 1)
  assert.equal((await sql`select from job_run where job = 'late-resolve'`).length, 1)
  assert.equal((await sql`select from job_run where job = 'stale-sweep'`).length, 0)
  await until('the server has none of its sessions left', async () => {
    const left =
      await sql`select from pg_stat_activity where application_name = 'cluster-telemetry-broker' and datname = current_database()`
    return left.length === 0
  })
})

test('with JOBS=external the server schedules no job', async (t) => {
  const { child, printed } = startServer(t, { JOBS: 'external' })
  await until('it is up', () => printed().includes('jobs scheduled'))
  assert.match(printed(), /"jobs":\[\],"msg":"jobs scheduled"/)
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  assert.equal(code, 0)
})
