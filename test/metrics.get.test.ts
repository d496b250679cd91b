import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { routes } from '../handlers/router.ts'
import { createApp } from '../lib/app/app.ts'
import { buildDeps } from '../lib/app/build.ts'
import { openDatabase } from '../lib/db/index.ts'
import { startApp, TOKENS } from './support/app.ts'
import { startProxy } from './support/proxy.ts'
import { podPost, servicePost } from './support/records.ts'
import { whileLocked } from './support/routes.ts'
import { becomes, until } from './support/until.ts'

const app = await startApp({
  BROKER_READ_ACQUIRE_WAIT_MS: '0',
  AUDIT_INFLIGHT_PERMITS: '5',
  BROKER_READ_MEMORY_BUDGET_MB: '3',
})

/** Samples by name with labels, and the type of each name; fails on invalid text format. */
function parse(text: string) {
  const samples = new Map<string, number>()
  const types = new Map<string, string>()
  assert.ok(text.endsWith('\n'))
  for (const line of text.split('\n').filter(Boolean)) {
    const [, name, type] = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line) ?? []
    if (name) {
      assert.ok(!types.has(name), `declared twice: ${name}`)
      types.set(name, type!)
    } else if (!line.startsWith('# HELP ')) {
      const [, series, value] = /^([a-zA-Z_:][\w:]*(?:\{(?:\w+="(?:[^"\\]|\\["\\n])*",?)*\})?) (\S+)$/.exec(line) ?? []
      assert.ok(series && !samples.has(series), line)
      samples.set(series, Number(value))
    }
  }
  return { samples, types }
}
async function scrape(from: { request: typeof app.app.request } = app.app) {
  const answer = await from.request('/metrics')
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  return parse(await answer.text())
}

const TYPES = {
  broker_db_schema_ready: 'gauge',
  broker_db_reachable: 'gauge',
  broker_agent_clock_skew_seconds: 'gauge',
  broker_audit_enabled: 'gauge',
  broker_audit_inflight_available: 'gauge',
  broker_audit_dropped_total: 'counter',
  broker_followers: 'gauge',
  broker_follow_lag_seconds: 'gauge',
  broker_flow_edges_lag_seconds: 'gauge',
  broker_supplychain_running_images_unscanned: 'gauge',
  broker_search_payloads_unread: 'gauge',
  broker_db_pool_idle: 'gauge',
  broker_db_pool_max: 'gauge',
  broker_read_budget_kib_total: 'gauge',
  broker_read_budget_kib_available: 'gauge',
  broker_seccomp_profiles_cache_hits_total: 'counter',
  broker_seccomp_profiles_cache_misses_total: 'counter',
}
test('GET /metrics 200: bodies refused because too many arrive at once are counted', async () => {
  const { incomingBodies } = app.deps
  const before = (await scrape()).samples.get('broker_bodies_shed_total')!
  const [first, second] = [incomingBodies.open(() => {}), incomingBodies.open(() => {})]
  first.add(12 * 1024 * 1024)
  second.add(12 * 1024 * 1024)
  first.end()
  second.end()
  assert.equal((await scrape()).samples.get('broker_bodies_shed_total'), before + 1)
})

test('GET /metrics 200: the last success and duration of each job, from the database', async () => {
  await app.sql`insert into job_run (job, finished_at, duration_ms, rows) values ('late-resolve', timestamp '2024-05-01 10:00:00', 1500, 7)`
  const { samples } = await scrape()
  assert.equal(
    samples.get('broker_job_last_success_timestamp_seconds{job="late-resolve"}'),
    Date.parse('2024-05-01T10:00:00Z') / 1000,
  )
  assert.equal(samples.get('broker_job_duration_seconds{job="late-resolve"}'), 1.5)
})

test('GET /metrics 200: the names and types that dashboards know', async () => {
  const { samples, types } = await scrape()
  for (const [name, type] of Object.entries(TYPES)) {
    assert.equal(types.get(name), type, name)
    assert.ok(samples.has(name), name)
  }
  for (const name of ['broker_read_shed_total', 'broker_uptime_seconds']) assert.ok(samples.has(name), name)
})

test('GET /metrics 200: counters have the type counter', async () => {
  const { types } = await scrape()
  for (const name of ['broker_read_shed_total', 'broker_uptime_seconds']) assert.equal(types.get(name), 'counter', name)
})

test('GET /metrics 200: the values of an idle process', async () => {
  const expected = {
    ...{
      broker_db_schema_ready: 1,
      broker_db_reachable: 1,
      broker_audit_enabled: 0,
      broker_audit_inflight_available: 5,
    },
    ...{ broker_audit_dropped_total: 0, broker_db_pool_idle: 8, broker_db_pool_max: 8, broker_read_shed_total: 0 },
    ...{ broker_read_budget_kib_total: 3072, broker_read_budget_kib_available: 3072 },
  }
  await becomes(async () => {
    const { samples } = await scrape()
    return Object.fromEntries(Object.keys(expected).map((name) => [name, samples.get(name)]))
  }, expected)
  assert.ok((await scrape()).samples.get('broker_uptime_seconds')! > 0)
})

test('GET /metrics 200: the available read budget, and the number of refused reads', async (t) => {
  const release = await app.deps.budget.acquire(3_000)
  t.after(release)
  assert.equal((await app.get('/pod/info')).status, 503)
  const { samples } = await scrape()
  assert.equal(samples.get('broker_read_budget_kib_available'), 72)
  assert.equal(samples.get('broker_read_shed_total'), 1)
  release()
  assert.equal((await scrape()).samples.get('broker_read_budget_kib_available'), 3_072)
})

test('GET /metrics 200: connections in use do not count as idle', async () => {
  let reads: Promise<unknown>[] = []
  await whileLocked(app.sql, 'pod', async () => {
    reads = [app.get('/pod/name/a'), app.get('/pod/list/a')]
    await until('both statements wait', () => app.db.stats().gates.read.inFlight === 2)
    await becomes(async () => (await scrape()).samples.get('broker_db_pool_idle'), 6)
  })
  await Promise.all(reads)
  await becomes(async () => (await scrape()).samples.get('broker_db_pool_idle'), 8)
})

test('GET /metrics 200: requests by method, pattern and status', async () => {
  const series = 'broker_http_request_duration_seconds_count{method="GET",route="/pod/name/:name",status="404"}'
  const before = (await scrape()).samples.get(series)!
  await Promise.all([app.get('/pod/name/x'), app.get('/pod/name/y'), app.get('/pod/name/z')])
  assert.equal((await scrape()).samples.get(series), before + 3)
})

test('GET /metrics 200: the text has no pod, namespace, node, service or address of posts and requests', async () => {
  const unique = 'zzsecretzz'
  const fields = {
    pod_name: `${unique}-pod`,
    pod_namespace: `${unique}-ns`,
    node_name: `${unique}-node`,
    pod_ip: '10.123.45.67',
  }
  await app.post('/pod/spec', podPost(fields))
  await app.post('/svc/spec', servicePost({ svc_name: unique, svc_ip: '10.123.45.68' }))
  const flow = {
    ...{
      uuid: `${unique}-uuid`,
      pod_name: fields.pod_name,
      pod_ip: '10.123.45.67',
      pod_port: '0',
      traffic_type: 'EGRESS',
    },
    ...{ ip_protocol: 'TCP', traffic_in_out_ip: '10.123.45.68', traffic_in_out_port: '80', decision: 'ALLOW' },
    time_stamp: '2024-05-01T10:00:00',
  }
  await app.post('/pod/traffic', flow)
  for (const path of [
    `/pod/name/${unique}-pod`,
    '/pod/ip/10.123.45.67',
    `/pod/list/${unique}-node`,
    `/pod/traffic/${unique}`,
    `/${unique}`,
  ])
    await app.get(path)
  await app.request(unique.toUpperCase(), '/pod/info')
  const { text } = await app.get('/metrics')
  for (const told of [unique, unique.toUpperCase(), '10.123.45']) assert.ok(!text.includes(told), told)
})

test('GET /metrics 200: no token is needed with auth on', async () => {
  const guarded = await startApp(TOKENS)
  for (const token of [undefined, 'unknown']) {
    const answer = await guarded.get('/metrics', token === undefined ? {} : { token })
    assert.equal(answer.status, 200)
    for (const secret of Object.values(TOKENS)) assert.ok(!answer.text.includes(secret))
  }
})

test('GET /metrics 200: the database is reachable but its schema is not that of this release', async () => {
  const [newest] =
    await app.sql`delete from schema_migration where version = (select max(version) from schema_migration) returning *`
  // A probe has little time, which a busy machine may use up.
  await becomes(async () => {
    const { samples } = await scrape()
    return [samples.get('broker_db_reachable'), samples.get('broker_db_schema_ready')]
  }, [1, 0])
  await app.sql`insert into schema_migration ${app.sql(newest!)}`
  await becomes(async () => (await scrape()).samples.get('broker_db_schema_ready'), 1)
})

test('GET /metrics 200: the database is silent, or gone', { timeout: 900_000 }, async () => {
  const proxy = await startProxy(app.url)
  const { config, log } = app.deps
  const db = openDatabase({
    connection: proxy.connection,
    poolMax: 8,
    statementTimeoutMs: 0,
    prepare: true,
    applicationName: 'broker-test-distant',
    log,
  })
  after(async () => {
    await db.end(100)
    await proxy.close()
  })
  const distant = createApp(buildDeps({ config, db, log }), routes)
  const reachable = async () => {
    const { samples } = await scrape(distant)
    assert.equal(samples.get('broker_db_schema_ready'), samples.get('broker_db_reachable'))
    return samples.get('broker_db_reachable')
  }
  await until('the first answer', async () => (await reachable()) === 1)
  proxy.pause()
  assert.deepEqual(await Promise.all([reachable(), reachable(), reachable()]), [0, 0, 0])
  proxy.resume()
  await until('it is reachable again', async () => (await reachable()) === 1)
  proxy.slam(true)
  proxy.cut()
  assert.equal(await reachable(), 0)
})

test('GET /metrics 200: concurrent scrapes share a text, and a later scrape gets a new one', async () => {
  const { deps } = app
  let made = 0
  const { metrics } = deps.metrics.registry
  deps.metrics.registry.metrics = () => {
    made++
    return metrics.call(deps.metrics.registry)
  }
  try {
    const first = app.get('/metrics')
    const others = Array.from({ length: 50 }, () => app.get('/metrics'))
    for (const { status, text } of await Promise.all([first, ...others]))
      assert.deepEqual([status, text.startsWith('# HELP')], [200, true])
    assert.ok(made <= 3, `${made} for 51`)
    deps.metrics.denialWorkloads.set(77)
    assert.ok((await app.get('/metrics')).text.includes('svc_seccomp_denial_workloads 77\n'))
  } finally {
    deps.metrics.registry.metrics = metrics
  }
})
