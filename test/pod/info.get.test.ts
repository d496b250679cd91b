import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { POD_KEYS, podPost, wholePodPost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'

const CHARGE_KIB = 20_000
const app = await startApp()
const guarded = await startApp({ ...TOKENS, DB_STATEMENT_TIMEOUT_MS: '300', BROKER_READ_ACQUIRE_WAIT_MS: '0' })
const token = TOKENS.BROKER_TOKEN_READ

const names = async (path: string): Promise<string[]> => {
  const answer = await app.get(path)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.map((pod: { pod_name: string }) => pod.pod_name)
}
async function store(...pods: Record<string, unknown>[]): Promise<void> {
  await app.sql`truncate pod, pod_address`
  for (const fields of pods) assert.equal((await app.post('/pod/spec', podPost(fields))).status, 200)
}

test('GET /pod/info 200: an empty array from an empty table', async () => {
  const answer = await app.get('/pod/info')
  assert.deepEqual([answer.status, answer.text], [200, '[]'])
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal((await app.get('/pod/info?include_dead=false')).text, '[]')
})

test('GET /pod/info 200: whole records, their keys in wire order', async () => {
  const whole = wholePodPost({ pod_ips: ['fd00::1'], time_stamp: '2024-05-01T10:00:00.5' })
  await store(whole, { pod_name: 'zz', pod_namespace: 'shop', pod_ip: '' })
  const [first, second] = (await app.get('/pod/info')).json
  assert.deepEqual(Object.keys(first), POD_KEYS)
  assert.deepEqual(Object.keys(second), POD_KEYS)
  assert.deepEqual(first, { ...whole, pod_ips: [whole.pod_ip, 'fd00::1'], time_stamp: '2024-05-01T10:00:00.500' })
  const nulls = Object.fromEntries(POD_KEYS.map((key) => [key, null]))
  const { pod_namespace, time_stamp, node_name } = second
  assert.deepEqual(second, { ...nulls, pod_name: 'zz', pod_ip: '', pod_ips: [], is_dead: false, pod_namespace, time_stamp, node_name })
})

test('GET /pod/info 200: by namespace, then name, in byte order; null namespaces last', async () => {
  const order = [
    ['', 'z'],
    ['B', 'x'],
    ['a', 'A'],
    ['a', 'a'],
    ['a', 'a-1'],
    ['a', 'a.1'],
    ['a', 'é'],
    ['a-b', '0'],
    ['ab', '1'],
    [null, 'Y'],
    [null, 'y'],
  ] as const
  await store(...[...order].reverse().map(([pod_namespace, pod_name]) => ({ pod_namespace, pod_name })))
  const pods: { pod_namespace: string | null; pod_name: string }[] = (await app.get('/pod/info')).json
  assert.deepEqual(
    pods.map((pod) => [pod.pod_namespace, pod.pod_name]),
    order,
  )
})

test('GET /pod/info 200: dead pods too, unless include_dead is false', async () => {
  await store({ pod_name: 'a' }, { pod_name: 'b', is_dead: true }, { pod_name: 'c' })
  assert.deepEqual(await names('/pod/info'), ['a', 'b', 'c'])
  assert.deepEqual(await names('/pod/info?include_dead=true'), ['a', 'b', 'c'])
  assert.deepEqual(await names('/pod/info?include_dead=false'), ['a', 'c'])
  assert.deepEqual(await names('/pod/info?unknown=1&include_dead=false&limit=x&include_dead=true'), ['a', 'c'])
  await app.post('/pod/mark_dead', { pod_name: 'c' })
  assert.deepEqual(await names('/pod/info?include_dead=false'), ['a'])
})

test('GET /pod/info 200: a row in place of an old one is one row', async () => {
  await store({ pod_name: 'a', pod_namespace: 'one' }, { pod_name: 'b' }, { pod_name: 'a', pod_namespace: 'two' })
  const pods: { pod_namespace: string | null }[] = (await app.get('/pod/info')).json
  assert.deepEqual(
    pods.map((pod) => pod.pod_namespace),
    ['two', null],
  )
})

for (const value of ['maybe', '', 'TRUE', '0', 'false%20', '%00']) {
  test(`GET /pod/info 400: include_dead=${value}`, async () => {
    const answer = await app.get(`/pod/info?include_dead=${value}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Query deserialize error: include_dead/)
    assert.match(answer.headers.get('content-type')!, /^text\/plain/)
  })
}

test('GET /pod/info 200: readers at once all see what was stored before they asked', async () => {
  await store({ pod_name: 'a' })
  const early = Array.from({ length: 6 }, () => names('/pod/info'))
  await app.post('/pod/spec', podPost({ pod_name: 'b' }))
  const late = Array.from({ length: 6 }, (_, i) => names(`/pod/info?include_dead=${i % 2 === 0}`))
  for (const list of await Promise.all(early)) assert.ok(list.includes('a'))
  for (const list of await Promise.all(late)) assert.deepEqual(list, ['a', 'b'])
})

test('GET /pod/info 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/pod/info'))
  assertUnauthorized(await guarded.get('/pod/info?include_dead=maybe', { token: 'unknown' }))
})

test('GET /pod/info 200: every token may read', async () => {
  for (const one of Object.values(TOKENS)) assert.equal((await guarded.get('/pod/info', { token: one })).status, 200)
})

test('GET /pod/info 503: shed when the read budget is spent, after what is wrong with the request is told', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - CHARGE_KIB + 1)
  assertShed(await guarded.get('/pod/info', { token }), CHARGE_KIB, budget.totalKib)
  assert.equal((await guarded.get('/pod/info?include_dead=maybe', { token })).status, 400)
  assertUnauthorized(await guarded.get('/pod/info'))
  release()
  assert.equal((await guarded.get('/pod/info', { token })).status, 200)
  assert.equal(budget.availableKib, budget.totalKib)
})

test('GET /pod/info 503: the table is locked for longer than a statement may take', async () => {
  await whileLocked(guarded.sql, 'pod', async () => assertDatabaseBusy(await guarded.get('/pod/info', { token })))
  assert.equal(guarded.deps.budget.availableKib, guarded.deps.budget.totalKib)
  assert.equal((await guarded.get('/pod/info', { token })).status, 200)
})
