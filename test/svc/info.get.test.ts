import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { SERVICE_KEYS, servicePost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const CHARGE_KIB = 4_000
const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const list = async () => {
  const answer = await app.get('/svc/info')
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const store = async (fields: Record<string, unknown> = {}) => {
  const body = servicePost(fields)
  assert.equal((await app.post('/svc/spec', body)).status, 200)
  return body
}

test('GET /svc/info 200: an empty array from an empty table', async () => {
  const answer = await app.get('/svc/info')
  assert.deepEqual([answer.status, answer.text], [200, '[]'])
  assert.equal(answer.headers.get('content-type'), 'application/json')
})

test('GET /svc/info 200: whole records, their keys in wire order', async () => {
  const service_spec = {
    metadata: { uid: 'u' },
    spec: { selector: { app: 'cart' }, ports: [{ port: 80, protocol: 'TCP' }] },
  }
  const whole = await store({ svc_name: 'a', svc_namespace: 'a', service_spec, time_stamp: '2024-05-01T10:00:00.25' })
  const bare = await store()
  const [first, second] = await list()
  assert.deepEqual(Object.keys(first), SERVICE_KEYS)
  assert.deepEqual(first, { ...whole, time_stamp: '2024-05-01T10:00:00.250' })
  assert.deepEqual(Object.keys(second), SERVICE_KEYS)
  assert.deepEqual(second, { ...bare, svc_name: null, svc_namespace: null, service_spec: null })
})

test('GET /svc/info 200: services are ordered by namespace, name and address, in byte order; nulls are last', async () => {
  await app.sql`truncate service`
  const order = [
    ['', '', '10.96.0.200'],
    ['B', 'z', '10.96.0.1'],
    ['a', 'A', '10.96.0.9'],
    ['a', 'a', '10.96.0.10'],
    ['a', 'a', '10.96.0.2'],
    ['a', 'a', 'fd00::1'],
    ['a', null, '10.96.0.0'],
    ['a-b', '0', '10.96.0.3'],
    ['ab', '0', '10.96.0.4'],
    [null, 'a', '10.96.0.5'],
    [null, null, '10.96.0.6'],
  ] as const
  for (const [svc_namespace, svc_name, svc_ip] of [...order].reverse()) await store({ svc_namespace, svc_name, svc_ip })
  const services: { svc_namespace: string; svc_name: string; svc_ip: string }[] = await list()
  assert.deepEqual(
    services.map((service) => [service.svc_namespace, service.svc_name, service.svc_ip]),
    order,
  )
})

test('GET /svc/info 200: a service that is posted again is listed once, and query parameters are ignored', async () => {
  await app.sql`truncate service`
  const { svc_ip } = await store({ svc_name: 'old' })
  await store({ svc_ip, svc_name: 'new' })
  const answer = await app.get('/svc/info?limit=x&include_dead=maybe')
  assert.equal(answer.status, 200)
  assert.deepEqual(
    answer.json.map((service: { svc_name: string }) => service.svc_name),
    ['new'],
  )
})

test('GET /svc/info 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/svc/info'))
  assertUnauthorized(await guarded.get('/svc/info', { token: 'unknown' }))
})

test('GET /svc/info 200: every token may read', async () => {
  for (const one of Object.values(TOKENS)) assert.equal((await guarded.get('/svc/info', { token: one })).status, 200)
})

test('GET /svc/info 503: shed when the read budget is spent', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - CHARGE_KIB + 1)
  assertShed(await guarded.get('/svc/info', { token }), CHARGE_KIB, budget.totalKib)
  release()
  assert.equal((await guarded.get('/svc/info', { token })).status, 200)
})

test('GET /svc/info 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'service', async () => assertDatabaseBusy(await guarded.get('/svc/info', { token })))
  assert.equal((await guarded.get('/svc/info', { token })).status, 200)
})
