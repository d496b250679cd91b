import assert from 'node:assert/strict'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startApp, TOKENS } from '../support/app.ts'
import { POD_KEYS, podPost, wholePodPost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const PAGE_ROWS = 1_000
const CHARGE_KIB = 4_000
const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
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
  assert.deepEqual(second, {
    ...nulls,
    pod_name: 'zz',
    pod_ip: '',
    pod_ips: [],
    is_dead: false,
    pod_namespace,
    time_stamp,
    node_name,
  })
})

test('GET /pod/info 200: pods are ordered by namespace, then name, in byte order; null namespaces are last', async () => {
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

test('GET /pod/info 200: dead pods are listed, too, unless include_dead is false', async () => {
  await store({ pod_name: 'a' }, { pod_name: 'b', is_dead: true }, { pod_name: 'c' })
  assert.deepEqual(await names('/pod/info'), ['a', 'b', 'c'])
  assert.deepEqual(await names('/pod/info?include_dead=true'), ['a', 'b', 'c'])
  assert.deepEqual(await names('/pod/info?include_dead=false'), ['a', 'c'])
  assert.deepEqual(await names('/pod/info?unknown=1&include_dead=false&limit=x&include_dead=true'), ['a', 'c'])
  await app.post('/pod/mark_dead', { pod_name: 'c' })
  assert.deepEqual(await names('/pod/info?include_dead=false'), ['a'])
})

test('GET /pod/info 200: a pod that is posted again is listed once', async () => {
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

test('GET /pod/info 200: concurrent readers all see what was stored before their request', async () => {
  await store({ pod_name: 'a' })
  const early = Array.from({ length: 6 }, () => names('/pod/info'))
  await app.post('/pod/spec', podPost({ pod_name: 'b' }))
  const late = Array.from({ length: 6 }, (_, i) => names(`/pod/info?include_dead=${i % 2 === 0}`))
  for (const list of await Promise.all(early)) assert.ok(list.includes('a'))
  for (const list of await Promise.all(late)) assert.deepEqual(list, ['a', 'b'])
})

// ---- Lists of many pages --------------------------------------------------------------------------------------------

/** Stores `named` pods in two namespaces, then `nameless` pods without one, from `p-000001` on. Every tenth is dead. */
const storeMany = async (named: number, nameless: number) => {
  await app.sql`truncate pod, pod_address`
  await app.sql`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips)
    select 'p-' || to_char(n, 'FM000000'), '', case when n <= ${named}::int then 'ns-' || n * 2 / ${named + 1}::int end,
           timestamp '2024-05-01', 'node-1', n % 10 = 0, '{}'
    from generate_series(1, ${named + nameless}::int) n`
}
const numbers = (count: number) => Array.from({ length: count }, (_, i) => `p-${String(i + 1).padStart(6, '0')}`)

for (const [named, nameless] of [
  [PAGE_ROWS - 1, 0],
  [PAGE_ROWS, 0],
  [PAGE_ROWS, 1],
  [PAGE_ROWS - 1, 2],
  [0, PAGE_ROWS],
  [0, PAGE_ROWS + 1],
  [PAGE_ROWS + 1, 0],
  [2 * PAGE_ROWS, 2 * PAGE_ROWS],
  [2_500, 1_700],
] as const) {
  test(`GET /pod/info 200: ${named} pods with a namespace and ${nameless} without are all listed, each once and in order`, async () => {
    await storeMany(named, nameless)
    const all = numbers(named + nameless)
    assert.deepEqual(await names('/pod/info'), all)
    assert.deepEqual(
      await names('/pod/info?include_dead=false'),
      all.filter((name) => !name.endsWith('0')),
    )
  })
}

test('GET /pod/info 200: a list of one page has a content-length, a longer one has none; both are gzipped on request', async () => {
  for (const [count, isWhole] of [
    [PAGE_ROWS - 1, true],
    [PAGE_ROWS + 1, false],
  ] as const) {
    await storeMany(count, 0)
    for (const packed of [false, true]) {
      const answer = await app.app.request('/pod/info', { headers: packed ? { 'accept-encoding': 'gzip' } : {} })
      const bytes = Buffer.from(await answer.arrayBuffer())
      assert.equal(answer.headers.get('content-length'), isWhole ? String(bytes.length) : null)
      assert.equal(answer.headers.get('content-encoding'), packed ? 'gzip' : null)
      assert.equal(answer.headers.get('vary'), 'accept-encoding')
      const text = (packed ? gunzipSync(bytes) : bytes).toString()
      assert.deepEqual(
        JSON.parse(text).map((pod: { pod_name: string }) => pod.pod_name),
        numbers(count),
      )
    }
    const head = await app.request('HEAD', '/pod/info')
    assert.deepEqual([head.status, head.text, head.headers.get('content-length') !== null], [200, '', isWhole])
  }
})

test('GET /pod/info 200: a page of large manifests stays below 3 MiB', async () => {
  await storeMany(60, 0)
  // Half a megabyte each.
  await app.sql`update pod set pod_obj = json_build_object('metadata', json_build_object('note', repeat('x', 500000)))`
  const reader = (await app.app.request('/pod/info')).body!.getReader()
  const before = app.db.stats().gates.read
  assert.equal(before.inFlight, 0)
  let text = ''
  let longest = 0
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    text += Buffer.from(next.value).toString()
    longest = Math.max(longest, next.value.buffer.byteLength)
  }
  assert.deepEqual(
    JSON.parse(text).map((pod: { pod_name: string }) => pod.pod_name),
    numbers(60),
  )
  // Each slice is a view of the buffer of its page.
  assert.ok(longest < 3 * 1024 * 1024, `${longest} bytes were held at once`)
})

test('GET /pod/info 200: pods are added and deleted while the list is sent; each pod that stays is sent once', async () => {
  await storeMany(3_000, 1_500)
  const reader = (await app.app.request('/pod/info')).body!.getReader()
  let text = Buffer.from((await reader.read()).value!).toString()
  // Some on the first page, some on later ones.
  await app.sql`delete from pod where pod_name in ('p-000002', 'p-001000', 'p-002000', 'p-003001', 'p-004500')`
  await store1('p-000001a', 'ns-0')
  await store1('p-002500a', 'ns-1')
  await store1('p-003500a', null)
  for (let next = await reader.read(); !next.done; next = await reader.read())
    text += Buffer.from(next.value).toString()
  const sent = JSON.parse(text).map((pod: { pod_name: string }) => pod.pod_name) as string[]
  assert.equal(new Set(sent).size, sent.length)
  const gone = new Set(['p-002000', 'p-003001', 'p-004500'])
  assert.deepEqual(
    sent.filter((name) => !name.endsWith('a')),
    numbers(4_500).filter((name) => !gone.has(name)),
  )
  assert.deepEqual(
    sent.filter((name) => name.endsWith('a')),
    ['p-002500a', 'p-003500a'],
  )
})

const store1 = (name: string, namespace: string | null) => app.sql`
  insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips)
  values (${name}, '', ${namespace}, timestamp '2024-05-01', 'node-1', false, '{}')`

test('GET /pod/info 200: a list whose next page cannot be read ends with an error', async () => {
  await storeMany(2_500, 0)
  const reader = (await app.app.request('/pod/info')).body!.getReader()
  await reader.read()
  await app.sql`alter table pod rename to elsewhere`
  try {
    await assert.rejects(async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read());
    })
  } finally {
    await app.sql`alter table elsewhere rename to pod`
  }
  assert.ok(app.logged.some((line) => String(line.msg).startsWith('a list was cut')))
  await app.sql`truncate pod, pod_address`
})

test('GET /pod/info 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/pod/info'))
  assertUnauthorized(await guarded.get('/pod/info?include_dead=maybe', { token: 'unknown' }))
})

test('GET /pod/info 200: every token may read', async () => {
  for (const one of Object.values(TOKENS)) assert.equal((await guarded.get('/pod/info', { token: one })).status, 200)
})

test('GET /pod/info 503: shed when the read budget is spent; a bad request is refused as such', async () => {
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
  await whileRefused(guarded.sql, 'pod', async () => assertDatabaseBusy(await guarded.get('/pod/info', { token })))
  assert.equal(guarded.deps.budget.availableKib, guarded.deps.budget.totalKib)
  assert.equal((await guarded.get('/pod/info', { token })).status, 200)
})
