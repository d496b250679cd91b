import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { POD_KEYS, podPost, wholePodPost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const CHARGE_KIB = 512
const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const list = async (node: string) => {
  const answer = await app.get(`/pod/list/${encodeURIComponent(node)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const names = async (node: string) => (await list(node)).map((pod: { pod_name: string }) => pod.pod_name)
const store = async (fields: Record<string, unknown>) =>
  assert.equal((await app.post('/pod/spec', podPost(fields))).status, 200)

test('GET /pod/list/{node} 200: an empty array for an unknown node', async () => {
  const answer = await app.get('/pod/list/nowhere')
  assert.deepEqual([answer.status, answer.text], [200, '[]'])
  assert.equal(answer.headers.get('content-type'), 'application/json')
})

test('GET /pod/list/{node} 200: the live pods of that node and of no other', async () => {
  await store({ pod_name: 'a', node_name: 'n1' })
  await store({ pod_name: 'b', node_name: 'n1', is_dead: true })
  await store({ pod_name: 'c', node_name: 'n2' })
  await store({ pod_name: 'd', node_name: 'N1' })
  assert.deepEqual(await names('n1'), ['a'])
  await app.post('/pod/mark_dead', { pod_name: 'a' })
  assert.deepEqual(await names('n1'), [])
  await store({ pod_name: 'c', node_name: 'n1' })
  assert.deepEqual(await names('n1'), ['c'])
  assert.deepEqual(await names('n2'), [])
  for (const pattern of ['n%', 'n_', '%', '*']) assert.deepEqual(await names(pattern), [])
})

test('GET /pod/list/{node} 200: pods are ordered by namespace, then name; null namespaces are last', async () => {
  const order = [
    ['a', 'A'],
    ['a', 'a'],
    ['a-b', '0'],
    ['ab', '00'],
    [null, 'Y'],
    [null, 'y'],
  ] as const
  for (const [pod_namespace, pod_name] of [...order].reverse())
    await store({ pod_namespace, pod_name, node_name: 'ordered' })
  const pods: { pod_namespace: string | null; pod_name: string }[] = await list('ordered')
  assert.deepEqual(
    pods.map((pod) => [pod.pod_namespace, pod.pod_name]),
    order,
  )
})

test('GET /pod/list/{node} 200: rows have all keys in wire order, and values in the form that agents parse', async () => {
  await store({ pod_name: 'bare', node_name: 'strict', pod_ip: '' })
  const whole = wholePodPost({
    pod_name: 'whole',
    node_name: 'strict',
    pod_ips: ['fd00::1'],
    time_stamp: '2024-05-01T10:00:00.123456789',
  })
  await store(whole)
  const [first, second] = await list('strict')
  assert.deepEqual(Object.keys(first), POD_KEYS)
  assert.deepEqual(first, { ...whole, pod_ips: [whole.pod_ip, 'fd00::1'], time_stamp: '2024-05-01T10:00:00.123456' })
  assert.deepEqual(Object.keys(second), POD_KEYS)
  assert.deepEqual(
    [second.pod_ip, second.pod_ips, second.workload_selector_labels, second.host_network],
    ['', [], null, null],
  )
  assert.equal(second.time_stamp, '2024-05-01T10:00:00')
})

test('GET /pod/list/{node} 200: a node name of any characters, percent-encoded', async () => {
  for (const node_name of ['a/b', 'a b', 'a%2Fb', '100%', 'ключ', '..', 'a?b#c', "x' or '1'='1"]) {
    await store({ node_name })
    if (node_name !== '..') assert.equal((await list(node_name)).length, 1, node_name)
  }
})

test('GET /pod/list/{node} 400: U+0000 in the name', async () => {
  const answer = await app.get('/pod/list/a%00b')
  assert.equal(answer.status, 400)
  assert.match(answer.text, /^Path deserialize error: node: U\+0000/)
})

test('GET /pod/list/{node} 404: without a node there is no such route', async () => {
  for (const path of ['/pod/list', '/pod/list/', '/pod/list/n1/pods']) {
    const answer = await app.get(path)
    assert.deepEqual([answer.status, answer.text], [404, ''])
  }
})

test('GET /pod/list/{node} 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/pod/list/n1'))
  assertUnauthorized(await guarded.get('/pod/list/a%00b', { token: 'unknown' }))
})

test('GET /pod/list/{node} 200: every token may read', async () => {
  for (const one of Object.values(TOKENS)) assert.equal((await guarded.get('/pod/list/n1', { token: one })).status, 200)
})

test('GET /pod/list/{node} 503: shed when the read budget is spent', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - CHARGE_KIB + 1)
  assertShed(await guarded.get('/pod/list/n1', { token }), CHARGE_KIB, budget.totalKib)
  release()
  assert.equal((await guarded.get('/pod/list/n1', { token })).status, 200)
})

test('GET /pod/list/{node} 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'pod', async () => assertDatabaseBusy(await guarded.get('/pod/list/n1', { token })))
  assert.equal((await guarded.get('/pod/list/n1', { token })).status, 200)
})
