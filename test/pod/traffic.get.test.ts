import assert from 'node:assert/strict'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const KEYS = [
  ...['uuid', 'pod_name', 'pod_namespace', 'pod_ip', 'pod_port', 'ip_protocol', 'traffic_type', 'traffic_in_out_ip'],
  ...['traffic_in_out_port', 'decision', 'time_stamp', 'peer_kind', 'peer_namespace', 'peer_name', 'peer_uid'],
  ...['peer_workload_kind', 'peer_workload_name', 'peer_resolved_at', 'drop_cause', 'syn_retries'],
]

const list = async (query = '') => {
  const answer = await app.get(`/pod/traffic${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json as Record<string, string>[]
}
const uuids = async (query = '') => (await list(query)).map(({ uuid }) => uuid)
/** Replaces all rows of the table with these. */
async function hold(rows: Record<string, unknown>[]): Promise<void> {
  await app.sql`truncate traffic`
  await app.sql`insert into traffic select * from json_populate_recordset(null::traffic, ${JSON.stringify(rows)}::text::json)`
}
/** Replaces all rows of the table with `count` rows; the uuid of the n-th newest is `n`. */
async function holdMany(count: number): Promise<void> {
  await app.sql`truncate traffic`
  await app.sql`
    insert into traffic (uuid, time_stamp)
    select n::text, timestamp '2024-05-01' - n * interval '1 microsecond' from generate_series(1, ${count}::int) n`
}
const numbers = (count: number) => Array.from({ length: count }, (_, i) => String(i + 1))
const T = (time: string) => `2024-05-01T${time}`

test('GET /pod/traffic 200: an empty array when there are no rows', async () => {
  const answer = await app.get('/pod/traffic')
  assert.deepEqual([answer.status, answer.text], [200, '[]'])
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.headers.get('content-length'), '2')
})

test('GET /pod/traffic 200: rows have all keys in wire order, null where there is no value', async () => {
  const whole = Object.fromEntries(KEYS.map((key) => [key, `${key}!`]))
  const row = {
    ...whole,
    time_stamp: T('10:00:00.123456'),
    peer_kind: 'node',
    peer_resolved_at: T('10:00:00'),
    syn_retries: 4,
  }
  await hold([row, { uuid: 'bare', time_stamp: T('09:00:00') }])
  const [first, second] = await list()
  assert.deepEqual(Object.keys(first!), KEYS)
  assert.deepEqual(first, row)
  assert.deepEqual(Object.keys(second!), KEYS)
  assert.deepEqual(
    second,
    Object.fromEntries(KEYS.map((key) => [key, { uuid: 'bare', time_stamp: T('09:00:00') }[key] ?? null])),
  )
})

test('GET /pod/traffic 200: rows are ordered newest first, then by uuid, the greatest first, byte by byte', async () => {
  const same = T('10:00:00.5')
  const ordered = [
    { uuid: 'm', time_stamp: T('10:00:00.500001') },
    ...['é', 'zz', 'z', 'b', 'a-', 'a', '_', 'Z', 'A', '9', '10', '-'].map((uuid) => ({ uuid, time_stamp: same })),
    { uuid: 'zzz', time_stamp: T('10:00:00.499999') },
    { uuid: 'old', time_stamp: '0001-01-01T00:00:00' },
  ]
  await hold([...ordered].sort(() => Math.random() - 0.5))
  const expected = ordered.map(({ uuid }) => uuid)
  assert.deepEqual(await uuids(), expected)
  for (let limit = 1; limit <= expected.length; limit++)
    assert.deepEqual(await uuids(`?limit=${limit}`), expected.slice(0, limit))
})

test('GET /pod/traffic 200: the default limit is 5000 rows, the least 1, the greatest 20000', async () => {
  await holdMany(20_003)
  assert.deepEqual(await uuids(), numbers(5_000))
  for (const [limit, count] of [
    ['5001', 5_001],
    ['19999', 19_999],
    ['20000', 20_000],
    ['20001', 20_000],
    ['9'.repeat(400), 20_000],
    ['0', 1],
    ['-0', 1],
    ['-5', 1],
    [`-${'9'.repeat(400)}`, 1],
    ['1', 1],
    ['%2B3', 3],
    ['007', 7],
  ] as const)
    assert.deepEqual(await uuids(`?limit=${limit}`), numbers(count), limit)
})

test('GET /pod/traffic 200: unknown parameters are ignored', async () => {
  await holdMany(3)
  assert.deepEqual(await uuids('?limit=2&offset=1&pod=web&order=asc&limits=1&x=%00'), numbers(2))
})

for (const query of [
  'limit=abc',
  'limit=',
  'limit=1.5',
  'limit=1e3',
  'limit=0x10',
  'limit=%205',
  'limit=5%00',
  'limit=null',
  'limit=٣',
]) {
  test(`GET /pod/traffic 400: ${query}`, async () => {
    const answer = await app.get(`/pod/traffic?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Query deserialize error: limit: /)
    assert.match(answer.headers.get('content-type')!, /^text\/plain/)
  })
}

test('GET /pod/traffic 200: a flow whose post was answered is in every list requested afterwards', async () => {
  await app.sql`truncate traffic`
  // Other lists run all the time. A list must not share a reading that began before the post was answered.
  let over = false
  const readers = Array.from({ length: 4 }, async () => {
    while (!over) await list('?limit=50')
  })
  for (let i = 0; i < 40; i++) {
    const uuid = `own-${i}`
    await app.post('/pod/traffic', { uuid, time_stamp: `2024-05-02T10:00:00.${String(i).padStart(3, '0')}` })
    assert.equal((await uuids('?limit=50'))[0], uuid)
  }
  over = true
  await Promise.all(readers)
})

test('GET /pod/traffic 200: concurrent requests with different limits each get their own rows', async () => {
  await holdMany(300)
  const limits = Array.from({ length: 60 }, (_, i) => 1 + ((i * 37) % 300))
  const answers = await Promise.all(limits.map((limit) => uuids(`?limit=${limit}`)))
  answers.forEach((answer, i) => {
    assert.deepEqual(answer, numbers(limits[i]!))
  })
})

test('GET /pod/traffic 200: a large answer is gzipped on request, a small one is not; content-length is that of the sent bytes', async () => {
  await holdMany(1_000)
  const plain = await app.get('/pod/traffic')
  assert.equal(plain.headers.get('content-encoding'), null)
  assert.equal(plain.headers.get('content-length'), String(Buffer.byteLength(plain.text)))
  assert.equal(plain.headers.get('vary'), 'accept-encoding')
  const headers = { 'accept-encoding': 'gzip' }
  const packed = await app.app.request('/pod/traffic', { headers })
  const bytes = Buffer.from(await packed.arrayBuffer())
  assert.equal(packed.headers.get('content-encoding'), 'gzip')
  assert.equal(packed.headers.get('content-length'), String(bytes.length))
  assert.equal(gunzipSync(bytes).toString(), plain.text)
  assert.equal((await app.get('/pod/traffic?limit=1', { headers })).headers.get('content-encoding'), null)
})

test('GET /pod/traffic 200: HEAD answers the headers alone', async () => {
  await holdMany(10)
  const [head, get] = [await app.request('HEAD', '/pod/traffic'), await app.get('/pod/traffic')]
  assert.deepEqual([head.status, head.text], [200, ''])
  for (const name of ['content-type', 'content-length']) assert.equal(head.headers.get(name), get.headers.get(name))
})

test('GET /pod/traffic 200: values with control characters are returned unchanged', async () => {
  const values = ['\u001f', '\u0001', 'a\u001fb', '"\\\u0008', '', '\u007f', 'é\u{1f680}', '\u2028']
  const rows = values.map((value, i) => ({
    uuid: `${value}${i}`,
    pod_name: value,
    decision: value,
    time_stamp: T(`10:00:0${9 - i}`),
  }))
  await hold(rows)
  const found = await list()
  assert.deepEqual(
    found.map(({ uuid, pod_name, decision }) => ({ uuid, pod_name, decision })),
    rows.map(({ uuid, pod_name, decision }) => ({ uuid, pod_name, decision })),
  )
})

// ---- Access and load shedding ---------------------------------------------------------------------------------------

test('GET /pod/traffic 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/pod/traffic'))
  assertUnauthorized(await guarded.get('/pod/traffic?limit=abc', { token: 'unknown' }))
  assertUnauthorized(await guarded.get('/pod/%74raffic'))
})

test('GET /pod/traffic 200: every token may read', async () => {
  for (const one of Object.values(TOKENS)) assert.equal((await guarded.get('/pod/traffic', { token: one })).status, 200)
})

test('GET /pod/traffic 404: another method, a slash at the end, or a capital letter', async () => {
  for (const [method, path] of [
    ['DELETE', '/pod/traffic'],
    ['PATCH', '/pod/traffic'],
    ['GET', '/pod/traffic/'],
    ['GET', '/pod/Traffic'],
  ] as const) {
    const answer = await guarded.request(method, path)
    assert.deepEqual([answer.status, answer.text], [404, ''])
  }
})

test('GET /pod/traffic 503: shed when the read budget is spent, with a charge by the requested limit', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib)
  const { shed } = budget
  for (const [query, kib] of [
    ['', 12_500],
    ['?limit=5000', 12_500],
    ['?limit=20000', 50_000],
    ['?limit=99999999', 50_000],
    ['?limit=-1', 3],
    ['?limit=2', 5],
  ] as const)
    assertShed(await guarded.get(`/pod/traffic${query}`, { token }), kib, 256 * 1024)
  assert.equal(budget.shed, shed + 6)
  assert.equal((await guarded.get('/pod/traffic?limit=abc', { token })).status, 400)
  release()
  assert.equal((await guarded.get('/pod/traffic', { token })).status, 200)
  assert.equal(budget.availableKib, budget.totalKib)
})

test('GET /pod/traffic 200: a list waits for its share of the budget and frees it afterwards', async () => {
  const { budget } = app.deps
  const release = await budget.acquire(budget.totalKib - 12_499)
  let isAnswered = false
  const waiting = app.get('/pod/traffic').then((answer) => {
    isAnswered = true
    return answer
  })
  // Waits behind the first list: first come, first served.
  const behind = app.get('/pod/traffic?limit=1')
  assert.equal((await app.get('/pod/name/nobody')).status, 404)
  assert.equal(isAnswered, false)
  release()
  assert.equal((await waiting).status, 200)
  assert.equal((await behind).status, 200)
  assert.equal(budget.availableKib, budget.totalKib)
})

test('GET /pod/traffic 503: the database cancels the statement', async () => {
  await whileRefused(guarded.sql, 'traffic', async () =>
    assertDatabaseBusy(await guarded.get('/pod/traffic', { token })),
  )
  assert.equal((await guarded.get('/pod/traffic', { token })).status, 200)
  assert.equal(guarded.deps.budget.availableKib, guarded.deps.budget.totalKib)
})
