import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { routes } from '../handlers/router.ts'
import { createApp } from '../lib/app/app.ts'
import { buildDeps } from '../lib/app/build.ts'
import { openDatabase } from '../lib/db/index.ts'
import { startApp, TOKENS } from './support/app.ts'
import { startProxy } from './support/proxy.ts'
import { whileLocked } from './support/routes.ts'
import { becomes, until } from './support/until.ts'

/**
 * Far above the timeout of the route and far below all other limits, so that without the timeout these tests would
 * fail.
 */
const LIMIT = { timeout: 900_000 }
const app = await startApp({ DB_STATEMENT_TIMEOUT_MS: '0' })
const guarded = await startApp(TOKENS, app)

/** The app with its database behind a proxy. */
const proxy = await startProxy(app.url)
const { config, log } = app.deps
const distantDb = openDatabase({
  connection: proxy.connection,
  poolMax: 8,
  statementTimeoutMs: 0,
  prepare: true,
  applicationName: 'broker-test-distant',
  log,
})
const distant = createApp(buildDeps({ config, db: distantDb, log }), routes)
after(async () => {
  await distantDb.end(100)
  await proxy.close()
})

const health = async (from: { request: typeof distant.request } = app.app) => {
  const answer = await from.request('/health')
  assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
  assert.equal(answer.headers.get('retry-after'), answer.status === 503 ? '1' : null)
  return [answer.status, await answer.text()] as const
}
const HEALTHY = [200, 'Healthy!'] as const
const OUTDATED = [503, 'Database schema not up to date'] as const
const UNAVAILABLE = [503, 'Database unavailable'] as const

test('GET /health 200: the database answers and its schema is that of this release', async () => {
  await becomes(() => health(), HEALTHY)
})

test('GET /health 200: with auth on, no token is needed and any token is accepted', async () => {
  for (const token of [undefined, 'unknown', TOKENS.BROKER_TOKEN_SUPPLYCHAIN])
    await becomes(async () => (await guarded.get('/health?x=1', token === undefined ? {} : { token })).status, 200)
})

test('GET /health 200: all connections for reads and writes are in use', async () => {
  const token = TOKENS.BROKER_TOKEN_INGEST
  let answers: Promise<{ status: number }[]>
  await whileLocked(guarded.sql, 'pod', async () => {
    const reads = Array.from({ length: 6 }, (_, i) => guarded.get(`/pod/list/node-${i}`, { token }))
    const writes = Array.from({ length: 6 }, (_, i) =>
      guarded.post('/pod/mark_dead', { pod_name: `pod-${i}` }, { token }),
    )
    const areTaken = () => {
      const { read, ingest } = guarded.db.stats().gates
      return read.waiting > 0 && ingest.waiting > 0
    }
    await until('the connections for reads and writes are taken', areTaken)
    // A probe has little time, which a busy machine may use up, so it is repeated; the connections stay in use.
    await until('it is healthy', async () => (await guarded.get('/health')).status === 200)
    assert.ok(areTaken())
    answers = Promise.all([...reads, ...writes])
  })
  for (const { status } of await answers!) assert.equal(status, 200)
})

test('GET /health 503: a migration of this release is missing', async () => {
  const [newest] =
    await app.sql`delete from schema_migration where version = (select max(version) from schema_migration) returning *`
  await becomes(() => health(), OUTDATED)
  await app.sql`insert into schema_migration ${app.sql(newest!)}`
  await becomes(() => health(), HEALTHY)
})

test('GET /health 503: the database has no table of migrations', async () => {
  await app.sql`alter table schema_migration rename to elsewhere`
  await becomes(() => health(), OUTDATED)
  await app.sql`alter table elsewhere rename to schema_migration`
  await becomes(() => health(), HEALTHY)
})

test('GET /health 503: the database does not answer in time', LIMIT, async () => {
  await whileLocked(app.sql, 'schema_migration', () => becomes(() => health(), UNAVAILABLE))
  await until('it answers again', async () => (await health())[0] === 200)
})

test('GET /health 503: the database is silent; 200 when it answers again', LIMIT, async () => {
  await becomes(() => health(distant), HEALTHY)
  proxy.pause()
  for (const answer of await Promise.all([health(distant), health(distant), health(distant)]))
    assert.deepEqual(answer, UNAVAILABLE)
  proxy.resume()
  await until('it answers again', async () => (await health(distant))[0] === 200)
})

test('GET /health 503: connections are closed as soon as they are made', async () => {
  proxy.slam(true)
  proxy.cut()
  await becomes(() => health(distant), UNAVAILABLE)
  proxy.slam(false)
  await until('it answers again', async () => (await health(distant))[0] === 200)
})

test('GET /health 503: nothing listens at the address of the database', async () => {
  const db = openDatabase({
    connection: 'postgres://nobody@127.0.0.1:1/none',
    poolMax: 3,
    statementTimeoutMs: 1_000,
    prepare: true,
    applicationName: 'broker-test-refused',
    log,
  })
  const refused = createApp(buildDeps({ config, db, log }), routes)
  await becomes(() => health(refused), UNAVAILABLE)
  const answer = await refused.request('/pod/info')
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1'])
  assert.match(await answer.text(), /^database unavailable; retry in a moment$/)
  await db.end(100)
})
