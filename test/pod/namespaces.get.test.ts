import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { podPost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const CHARGE_KIB = 64
const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const namespaces = async () => {
  const answer = await app.get('/pod/namespaces')
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const store = async (pod_namespace: string | null, fields: Record<string, unknown> = {}) => {
  const body = podPost({ pod_namespace, ...fields })
  assert.equal((await app.post('/pod/spec', body)).status, 200)
  return body
}

test('GET /pod/namespaces 200: an empty array when there are no pods, or only pods without a namespace', async () => {
  const answer = await app.get('/pod/namespaces')
  assert.deepEqual([answer.status, answer.text], [200, '[]'])
  assert.equal(answer.headers.get('content-type'), 'application/json')
  await store(null)
  assert.deepEqual(await namespaces(), [])
})

test('GET /pod/namespaces 200: each namespace is listed once, in byte order', async () => {
  const expected = ['', 'A', 'B', 'a', 'a-b', 'ab', 'b', 'é', '元']
  for (const one of [...expected, ...expected].reverse()) await store(one)
  assert.deepEqual(await namespaces(), expected)
})

test('GET /pod/namespaces 200: only namespaces of live pods are listed', async () => {
  await app.sql`truncate pod, pod_address`
  const first = await store('both')
  await store('both', { is_dead: true })
  await store('dead', { is_dead: true })
  const last = await store('going')
  assert.deepEqual(await namespaces(), ['both', 'going'])
  await app.post('/pod/mark_dead', { pod_name: last.pod_name })
  assert.deepEqual(await namespaces(), ['both'])
  await app.post('/pod/mark_dead', { pod_name: first.pod_name })
  assert.deepEqual(await namespaces(), [])
})

test('GET /pod/namespaces 200: 700 namespaces of three pods each are all listed once', async () => {
  await app.sql`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips)
    select 'bulk-' || i, '10.0.0.1', 'ns-' || lpad((i % 700)::text, 3, '0'), '2024-05-01', 'n', false, '{}' from generate_series(1, 2100) i`
  const expected = Array.from({ length: 700 }, (_, i) => `ns-${String(i).padStart(3, '0')}`)
  assert.deepEqual(await namespaces(), expected)
})

test('GET /pod/namespaces 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/pod/namespaces'))
  assertUnauthorized(await guarded.get('/pod/namespaces', { token: 'unknown' }))
})

test('GET /pod/namespaces 200: every token may read', async () => {
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/pod/namespaces', { token: one })).status, 200)
})

test('GET /pod/namespaces 503: shed when the read budget is spent', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - CHARGE_KIB + 1)
  assertShed(await guarded.get('/pod/namespaces', { token }), CHARGE_KIB, budget.totalKib)
  release()
  assert.equal((await guarded.get('/pod/namespaces', { token })).status, 200)
})

test('GET /pod/namespaces 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'pod', async () =>
    assertDatabaseBusy(await guarded.get('/pod/namespaces', { token })),
  )
  assert.equal((await guarded.get('/pod/namespaces', { token })).status, 200)
})
