/** Answers of probes and metrics while connections are stuck, used up or lost. */
import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { routes } from '../../handlers/router.ts'
import { lateResolve } from '../../jobs/late-resolve.ts'
import { trafficRetention } from '../../jobs/traffic-retention.ts'
import { createAdmin } from '../../lib/app/admin.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { openDatabase } from '../../lib/db/index.ts'
import { schemaState } from '../../sql/migrate/schema-state.ts'
import { startApp } from '../support/app.ts'
import { startAsRole } from '../support/as-role.ts'
import { podPost } from '../support/records.ts'
import { whileLocked } from '../support/routes.ts'
import { becomes, until } from '../support/until.ts'

/** Some tests would wait for ever if the tested behaviour were missing. */
const LIMIT = { timeout: 900_000 }
const owner = await startApp({ DB_STATEMENT_TIMEOUT_MS: '0' })
const { config, log } = owner.deps

interface Asked {
  request(path: string): Response | Promise<Response>
}

const health = async ({ request }: Asked) => {
  const answer = await request('/health')
  return [answer.status, await answer.text()] as const
}
const HEALTHY = [200, 'Healthy!'] as const
const UNAVAILABLE = [503, 'Database unavailable'] as const

/** The gauges of a reachable database and of a ready schema. */
async function gauges({ request }: Asked): Promise<(string | undefined)[]> {
  const text = await (await request('/metrics')).text()
  return ['reachable', 'schema_ready'].map((name) => new RegExp(`^broker_db_${name} (\\d)$`, 'm').exec(text)?.[1])
}

/** A broker with connections of its own, whose application name is `name`. */
function startNamed(name: string, poolMax: number) {
  const db = openDatabase({
    connection: owner.url,
    poolMax,
    statementTimeoutMs: 0,
    prepare: true,
    applicationName: name,
    log,
  })
  after(() => db.end(100))
  const deps = buildDeps({ config, db, log })
  const sessions = (like: string) =>
    owner.sql<
      { pid: number }[]
    >`select pid from pg_stat_activity where application_name = ${name} and query like ${like}`
  return { db, deps, app: createApp(deps, routes), sessions }
}

for (const poolMax of [6, 8]) {
  test(`jobs that wait for a lock on the flows do not delay probes, with ${poolMax} connections`, LIMIT, async () => {
    const name = `probes-jobs-${poolMax}`
    const { app, db, deps, sessions } = startNamed(name, poolMax)
    const signal = new AbortController().signal
    const context = { config, db, log, signal }
    let passes: Promise<unknown>[] = []
    await whileLocked(owner.sql, 'traffic', async () => {
      passes = [lateResolve.run(context), trafficRetention.run(context)]
      const jobs = poolMax === 6 ? 1 : 2
      await until('the jobs wait', async () => {
        const waiting =
          await owner.sql`select from pg_stat_activity where application_name = ${name} and wait_event_type = 'Lock'`
        return waiting.length === jobs
      })
      // Repeated, since a probe waits for milliseconds only and a busy machine may be slower; the jobs wait meanwhile.
      await until('it is healthy', async () => (await health(app))[0] === 200)
      await until('the gauges say so', async () => (await gauges(app)).join() === '1,1')
      await until('it is ready', async () => (await createAdmin(deps).request('/readyz')).status === 200)
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify(podPost({ pod_name: name }))
      assert.equal((await app.request('/pod/spec', { method: 'POST', headers, body })).status, 200)
      assert.equal((await app.request(`/pod/name/${name}`)).status, 200)
      assert.ok((await sessions('%')).length <= poolMax)
    })
    await Promise.all(passes)
  })
}

test('the metrics have a series for every gate', async () => {
  const text = await (await owner.app.request('/metrics')).text()
  for (const gate of ['ingest', 'read', 'probe', 'job'])
    assert.match(text, new RegExp(`^broker_db_gate_waiting{gate="${gate}"} 0$`, 'm'))
})

test('concurrent probes and scrapes share one statement, which ends in the server if it is stuck', LIMIT, async () => {
  const { app, db, sessions } = startNamed('probes-shared', 6)
  await becomes(() => health(app), HEALTHY)
  await whileLocked(owner.sql, 'schema_migration', async () => {
    const answers = Promise.all([
      ...Array.from({ length: 5 }, () => health(app)),
      ...Array.from({ length: 5 }, () => gauges(app)),
    ])
    await until('it waits', () => db.probe.stats.inFlight === 1)
    assert.equal(db.probe.stats.waiting, 0)
    for (const answer of await answers)
      assert.deepEqual(answer, typeof answer[0] === 'number' ? UNAVAILABLE : ['0', '0'])
    // Without a statement timeout, a statement left in the server would wait for ever.
    await until('the server has given up', async () => {
      const stuck =
        await owner.sql`select from pg_stat_activity where application_name = 'probes-shared' and wait_event_type = 'Lock'`
      return stuck.length === 0
    })
  })
  await becomes(() => health(app), HEALTHY)
  await becomes(async () => (await sessions('%')).length, 1)
})

test('a probe whose connection has fallen silent reports 503, and soon 200 over a new connection', LIMIT, async (t) => {
  const { app, db, sessions } = startNamed('probes-silent', 6)
  await becomes(() => health(app), HEALTHY)
  const [{ pid }] = (await sessions('%schema_migration%')) as unknown as [{ pid: number }]
  process.kill(pid, 'SIGSTOP')
  t.after(() => process.kill(pid, 'SIGCONT'))
  await becomes(() => health(app), UNAVAILABLE)
  await becomes(() => health(app), HEALTHY)
  assert.equal(db.probe.stats.open, 1)
})

test('a probe that arrives while a statement is stuck gets a statement of its own', LIMIT, async (t) => {
  const { app, db, sessions } = startNamed('probes-anew', 6)
  await becomes(() => health(app), HEALTHY)
  const [{ pid }] = (await sessions('%schema_migration%')) as unknown as [{ pid: number }]
  process.kill(pid, 'SIGSTOP')
  t.after(() => process.kill(pid, 'SIGCONT'))
  const early = health(app)
  await until('it is stuck', () => db.probe.stats.inFlight === 1)
  const late = [schemaState(db, 20_000), schemaState(db, 20_000)]
  assert.deepEqual(await early, UNAVAILABLE)
  assert.deepEqual(await Promise.all(late), ['ready', 'ready'])
})

test('while the server takes no further connections, probes report what requests get', LIMIT, async () => {
  const broker = await startAsRole(owner)
  const limit = (connections: number) => owner.sql.unsafe(`alter role ${broker.role} connection limit ${connections}`)
  const post = async () => {
    const { status, headers } = await broker.post('/pod/spec', podPost({ pod_name: 'full' }))
    return [status, headers.get('retry-after')]
  }
  await becomes(() => health(broker.app), HEALTHY)
  await limit(1)
  await becomes(() => health(broker.app), HEALTHY) // no request has failed yet
  assert.deepEqual(await post(), [503, '1'])
  await becomes(() => health(broker.app), UNAVAILABLE) // though the probe's own connection works
  await becomes(() => gauges(broker.app), ['0', '0'])
  await limit(-1)
  await becomes(() => health(broker.app), HEALTHY) // noticed without any request in between
  assert.deepEqual(await post(), [200, null])
  assert.equal((await broker.get('/pod/name/full')).status, 200)

  // The opposite case: requests have their connections, and the probe has lost its own.
  await limit(2)
  await broker.terminate('%schema_migration%')
  await until('it is lost', () => broker.db.probe.stats.open === 0)
  await becomes(() => health(broker.app), HEALTHY)
  await becomes(() => gauges(broker.app), ['1', '1'])
  assert.deepEqual([broker.db.ingest.stats.open, broker.db.read.stats.open, broker.db.probe.stats.open], [1, 1, 0])
  await limit(-1)
})

test('when requests have lost their connections, the probe opens a new one, too', LIMIT, async () => {
  const { app, db, sessions } = startNamed('probes-replaced', 6)
  await becomes(() => health(app), HEALTHY)
  const before = await sessions('%schema_migration%')
  await db.read((sql) => sql`select 1`)
  await owner.sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'probes-replaced' and query = 'select 1'`
  await until('it is lost', () => db.read.stats.open === 0)
  await becomes(() => health(app), HEALTHY)
  const now = await sessions('%schema_migration%')
  assert.ok(now.some(({ pid }) => pid !== before[0]!.pid))
})
