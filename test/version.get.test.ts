import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { startApp, TOKENS } from './support/app.ts'
import { assertDatabaseBusy, assertUnauthorized, whileRefused } from './support/routes.ts'

const telemetry = { TELEMETRY_ENDPOINT: 'http://127.0.0.1:1/never-asked', CHART_VERSION: '2.4.0+build.7' }
const app = await startApp(telemetry)
const guarded = await startApp({ ...TOKENS, ...telemetry }, app)
const token = TOKENS.BROKER_TOKEN_READ

const broker = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version as string
const learnt = (latest: object) =>
  app.sql`update install set latest = ${JSON.stringify(latest)}::text::json, checked_at = '2024-05-01 10:00:00.5'`

test('GET /version 200: without a chart and an address only the version of the broker is known', async () => {
  const { get } = await startApp()
  const { status, json } = await get('/version')
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(json), [
    'broker',
    'chart',
    'telemetry_enabled',
    'latest',
    'checked_at',
    'update_available',
  ])
  assert.deepEqual(json, {
    broker,
    chart: 'unknown',
    telemetry_enabled: false,
    latest: null,
    checked_at: null,
    update_available: false,
  })
  assert.match(broker, /^\d+\.\d+\.\d+/)
})

test('GET /version 200: nothing is known before the first check-in', async () => {
  const { json } = await app.get('/version')
  assert.deepEqual(json, {
    broker,
    chart: '2.4.0',
    telemetry_enabled: true,
    latest: null,
    checked_at: null,
    update_available: false,
  })
})

test('GET /version 200: the result of the last check-in', async () => {
  await learnt({ chart: '2.5.0', broker: '7.0.0' })
  const { json } = await app.get('/version')
  assert.deepEqual(json.latest, { chart: '2.5.0', broker: '7.0.0' })
  assert.equal(json.checked_at, '2024-05-01T10:00:00.500')
  assert.equal(json.update_available, true)
})

test('GET /version 200: an update is available if the latest chart differs, apart from build metadata', async () => {
  for (const [latest, expected] of [
    [{ chart: '2.4.0' }, false],
    [{ chart: '2.4.0+other' }, false],
    [{ chart: '2.3.9' }, true],
    [{ broker: '9.9.9' }, false],
    [{}, false],
  ] as const) {
    await learnt(latest)
    assert.equal((await app.get('/version')).json.update_available, expected, JSON.stringify(latest))
  }
})

test('GET /version 200: with telemetry off, results of earlier check-ins are hidden', async () => {
  const { get, sql } = await startApp({ ...telemetry, TELEMETRY_ENABLED: 'false' })
  await sql`update install set latest = '{"chart":"9.9.9"}', checked_at = now()`
  assert.deepEqual((await get('/version')).json, {
    broker,
    chart: '2.4.0',
    telemetry_enabled: false,
    latest: null,
    checked_at: null,
    update_available: false,
  })
})

test('GET /version 401: a request without a token is refused', async () =>
  assertUnauthorized(await guarded.get('/version')))

test('GET /version 200: with a token that reads', async () =>
  assert.equal((await guarded.get('/version', { token })).status, 200))

test('GET /version 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'install', async () => assertDatabaseBusy(await guarded.get('/version', { token })))
})
