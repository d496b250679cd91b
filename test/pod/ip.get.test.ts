import assert from 'node:assert/strict'
import test from 'node:test'
import { type Answer, startApp, TOKENS } from '../support/app.ts'
import { POD_KEYS, podPost, wholePodPost } from '../support/records.ts'
import { assertDatabaseBusy, assertNoData, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const holder = (ip: string, at?: string): Promise<Answer> =>
  app.get(`/pod/ip/${encodeURIComponent(ip)}${at === undefined ? '' : `?at=${encodeURIComponent(at)}`}`)
const holderName = async (ip: string, at?: string): Promise<string | null> => {
  const answer = await holder(ip, at)
  if (answer.status === 200) return answer.json.pod_name
  assertNoData(answer)
  return null
}
const store = async (...pods: Record<string, unknown>[]) => {
  for (const fields of pods) assert.equal((await app.post('/pod/spec', podPost(fields))).status, 200)
}
const T = (time: string) => `2024-05-01T${time}`

test('GET /pod/ip/{ip} 404: no pod holds the address', async () => {
  await store({ pod_ip: '10.0.0.11' })
  for (const ip of ['10.0.0.1', '10.0.0.111', '10.0.0.%', 'None', 'fd00::99']) assertNoData(await holder(ip))
  assertNoData(await holder('10.0.0.1', T('10:00:00')))
})

test('GET /pod/ip/{ip} 200: one record, its keys in wire order, with `at` and without', async () => {
  const whole = wholePodPost({ pod_ip: '10.1.0.1', pod_ips: ['fd01::1'] })
  await store(whole)
  for (const at of [undefined, '', T('09:00:00')]) {
    const answer = await holder('10.1.0.1', at)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'application/json')
    assert.deepEqual(Object.keys(answer.json), POD_KEYS)
    assert.deepEqual(answer.json, { ...whole, pod_ips: ['10.1.0.1', 'fd01::1'] })
  }
})

test('GET /pod/ip/{ip} 200: a pod is found by each of its current addresses', async () => {
  const { pod_name } = podPost()
  await store({ pod_name, pod_ip: '10.2.0.1', pod_ips: ['fd02::1', '10.2.0.2'] })
  for (const ip of ['10.2.0.1', 'fd02::1', '10.2.0.2']) assert.equal(await holderName(ip), pod_name)
  await store({ pod_name, pod_ip: '10.2.0.1', pod_ips: ['10.2.0.3'] })
  for (const ip of ['10.2.0.1', '10.2.0.3']) assert.equal(await holderName(ip), pod_name)
  for (const ip of ['fd02::1', '10.2.0.2']) assert.equal(await holderName(ip), null)
})

test('GET /pod/ip/{ip} 200: the address is canonicalised before the look-up', async () => {
  await store(
    { pod_name: 'six', pod_ip: 'fd03::a:1' },
    { pod_name: 'four', pod_ip: '::ffff:10.3.0.1' },
    { pod_name: 'compatible', pod_ip: '::10.3.0.1' },
  )
  for (const ip of ['FD03::A:1', 'fd03:0:0:0:0:0:a:1', 'fd03::000a:0001']) assert.equal(await holderName(ip), 'six')
  for (const ip of ['10.3.0.1', '::ffff:10.3.0.1', '::FFFF:a03:1', '0:0:0:0:0:ffff:0a03:0001'])
    assert.equal(await holderName(ip), 'four')
  for (const ip of ['::10.3.0.1', '::a03:1']) assert.equal(await holderName(ip), 'compatible')
  assert.equal((await app.get('/pod/ip/FD03::a:1')).json.pod_name, 'six')
  assert.equal((await app.get('/pod/ip/fd03%3a%3aA%3A1')).json.pod_name, 'six')
  assert.equal(await holderName('010.3.0.1'), null)
})

test('GET /pod/ip/{ip} 200: text that is not an address is looked up as it is written', async () => {
  await store({ pod_name: 'zoned', pod_ip: 'fe80::1%eth0' }, { pod_name: 'odd', pod_ip: 'a/b ?' })
  assert.equal(await holderName('fe80::1%eth0'), 'zoned')
  assert.equal(await holderName('FE80::1%eth0'), null)
  assert.equal(await holderName('a/b ?'), 'odd')
})

test('GET /pod/ip/{ip} 200: a live pod is preferred to a dead one, then the newest record, then the first name', async () => {
  const pod_ip = '10.4.0.1'
  await store({ pod_name: 'dead-new', pod_ip, is_dead: true, time_stamp: T('12:00:00') })
  await store({ pod_name: 'dead-old', pod_ip, is_dead: true, time_stamp: T('11:00:00') })
  assert.equal(await holderName(pod_ip), 'dead-new')
  await store({ pod_name: 'alive-old', pod_ips: [pod_ip], time_stamp: T('09:00:00') })
  assert.equal(await holderName(pod_ip), 'alive-old')
  await store({ pod_name: 'z-alive-new', pod_ip, time_stamp: T('09:00:00.000001') })
  assert.equal(await holderName(pod_ip), 'z-alive-new')
  await store({ pod_name: 'a-alive-new', pod_ip, time_stamp: T('09:00:00.000001') })
  assert.equal(await holderName(pod_ip), 'a-alive-new')
})

test('GET /pod/ip/{ip} 200: with `at`, a pod holds its address from its start on, to the microsecond; 404 before', async () => {
  const pod_ip = '10.5.0.1'
  await store({ pod_name: 'started', pod_ip, started_at: T('09:00:00.5') })
  assert.equal(await holderName(pod_ip, T('09:00:00.5')), 'started')
  assert.equal(await holderName(pod_ip, T('09:00:00.499999')), null)
  assert.equal(await holderName(pod_ip, '2099-01-01T00:00:00'), 'started')
})

test('GET /pod/ip/{ip} 404: with `at`, a pod without a known start is not found', async () => {
  await store({ pod_name: 'unknown-start', pod_ip: '10.6.0.1' })
  assert.equal(await holderName('10.6.0.1', T('23:00:00')), null)
  assert.equal(await holderName('10.6.0.1'), 'unknown-start')
})

test('GET /pod/ip/{ip} 200: with `at`, a dead pod holds its address up to its last record, to the microsecond; 404 after', async () => {
  const pod_ip = '10.7.0.1'
  await store({ pod_name: 'ended', pod_ip, is_dead: true, started_at: T('08:00:00'), time_stamp: T('10:00:00.000001') })
  assert.equal(await holderName(pod_ip, T('10:00:00.000001')), 'ended')
  assert.equal(await holderName(pod_ip, T('10:00:00.000002')), null)
  assert.equal(await holderName(pod_ip, T('07:59:59')), null)
})

test('GET /pod/ip/{ip} 200: with `at`, a live pod is found after its last record, too', async () => {
  await store({ pod_name: 'running', pod_ip: '10.8.0.1', started_at: T('08:00:00'), time_stamp: T('08:00:01') })
  assert.equal(await holderName('10.8.0.1', T('23:00:00')), 'running')
})

test('GET /pod/ip/{ip} 200: with `at`, a live pod is preferred, then the latest start, the newest record, the first name', async () => {
  const pod_ip = '10.9.0.1'
  const at = T('12:00:00')
  const ranked = [
    { pod_name: 'q-alive', started_at: T('11:00:00'), time_stamp: T('12:30:00') },
    { pod_name: 'r-alive', started_at: T('11:00:00'), time_stamp: T('12:30:00') },
    { pod_name: 'a-alive', started_at: T('11:00:00'), time_stamp: T('12:29:00') },
    { pod_name: 'b-alive', started_at: T('10:00:00'), time_stamp: T('12:59:00') },
    { pod_name: 'a-dead', started_at: T('11:30:00'), time_stamp: T('12:10:00'), is_dead: true },
    { pod_name: 'b-dead', started_at: T('11:20:00'), time_stamp: T('12:50:00'), is_dead: true },
  ]
  const excluded = [
    { pod_name: 'later', started_at: T('12:00:00.000001'), time_stamp: T('13:00:00') },
    { pod_name: 'gone', started_at: T('11:50:00'), time_stamp: T('11:59:59.999999'), is_dead: true },
    { pod_name: 'unknown', time_stamp: T('13:00:00') },
  ]
  await store(...[...ranked].reverse().map((pod) => ({ ...pod, pod_ip })))
  await store(...excluded.map((pod) => ({ ...pod, pod_ips: [pod_ip] })))
  for (const { pod_name } of ranked) {
    assert.equal(await holderName(pod_ip, at), pod_name)
    await app.sql`delete from pod where pod_name = ${pod_name}`
  }
  assert.equal(await holderName(pod_ip, at), null)
})

const INSTANTS = {
  '2024-05-01T10:00:00': 'held',
  '2024-05-01T10:00:00.000': 'held',
  '2024-05-01T09:59:59.999999': null,
  '2024-05-01T10:00:00Z': 'held',
  '2024-05-01t10:00:00z': 'held',
  '2024-05-01T12:00:00+02:00': 'held',
  '2024-05-01T11:59:59+02:00': null,
  '2024-05-01T04:30:00-05:30': 'held',
  '2024-05-01 10:00:00+00:00': 'held',
  '2024-04-30T23:00:00-11:00': 'held',
  '2024-05-01T10:00:00.000000999Z': 'held',
  '2024-05-01T09:59:59.999999999Z': null,
}
for (const [at, expected] of Object.entries(INSTANTS)) {
  test(`GET /pod/ip/{ip} ${expected ? 200 : 404}: at=${at}`, async () => {
    await store({ pod_name: 'held', pod_ip: '10.10.0.1', started_at: T('10:00:00') })
    assert.equal(await holderName('10.10.0.1', at), expected)
  })
}

for (const blank of ['?at=', '?at', '?at=%20%20', '?at=+', '?other=1', '?']) {
  test(`GET /pod/ip/{ip} 200: the current holder is answered with ${blank}`, async () => {
    await store({ pod_name: 'now', pod_ip: '10.11.0.1' })
    assert.equal((await app.get(`/pod/ip/10.11.0.1${blank}`)).json.pod_name, 'now')
  })
}

for (const bad of [
  ...[
    'yesterday',
    '1714554000',
    '2024-05-01',
    '2024-05-01T10:00',
    '2024-02-30T10:00:00',
    '2023-02-29T10:00:00Z',
    '2024-05-01T25:00:00',
  ],
  ...[
    '2024-05-01T10:00:00.Z',
    '2024-05-01T10:00:00+2',
    '2024-05-01T10:00:00 02:00',
    'infinity',
    '2024-05-01T10:00:00\0',
  ],
]) {
  test(`GET /pod/ip/{ip} 400: at=${JSON.stringify(bad)}, and the accepted forms are named`, async () => {
    const answer = await holder('10.0.0.11', bad)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Query deserialize error: at: .*RFC 3339.*naive UTC.*YYYY-MM-DDTHH:MM:SS/)
    assert.match(answer.headers.get('content-type')!, /^text\/plain/)
  })
}

test('GET /pod/ip/{ip} 400: a + in an offset that is not escaped is read as a space', async () => {
  assert.equal((await app.get('/pod/ip/10.0.0.11?at=2024-05-01T10:00:00+02:00')).status, 400)
  assert.equal((await app.get('/pod/ip/10.0.0.11?at=2024-05-01T10:00:00%2B02:00')).status, 404)
})

test('GET /pod/ip/{ip} 400: U+0000 in the address', async () => {
  const answer = await app.get('/pod/ip/10.0.0.1%00')
  assert.equal(answer.status, 400)
  assert.match(answer.text, /^Path deserialize error: ip: U\+0000/)
})

test('GET /pod/ip/{ip} 404: without an address, or with more of a path, there is no such route', async () => {
  for (const path of ['/pod/ip', '/pod/ip/', '/pod/ip/10.0.0.0/8']) {
    const answer = await app.get(path)
    assert.deepEqual([answer.status, answer.text], [404, ''])
  }
})

test('GET /pod/ip/{ip} 200: many look-ups at once, with and without a time, each get their own answer', async () => {
  const all = Array.from({ length: 60 }, (_, i) => ({
    pod_name: `many-${i}`,
    pod_ip: `10.12.0.${i}`,
    started_at: `2024-05-01T10:00:${i}`.replace(/:(\d)$/, ':0$1'),
  }))
  await Promise.all(all.map((pod) => store(pod)))
  const calls = all.flatMap(({ pod_name, pod_ip, started_at }) => [
    holderName(pod_ip).then((name) => assert.equal(name, pod_name)),
    holderName(pod_ip, started_at).then((name) => assert.equal(name, pod_name)),
    holderName(pod_ip, '2024-05-01T09:59:59').then((name) => assert.equal(name, null)),
  ])
  await Promise.all(calls)
})

test('GET /pod/ip/{ip} 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/pod/ip/10.0.0.1'))
  assertUnauthorized(await guarded.get('/pod/ip/10.0.0.1?at=bad', { token: 'unknown' }))
})

test('GET /pod/ip/{ip} 200: every token may read, and the read budget is not charged', async () => {
  await guarded.post('/pod/spec', podPost({ pod_ip: '10.0.0.1' }), { token: TOKENS.BROKER_TOKEN_INGEST })
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib)
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/pod/ip/10.0.0.1', { token: one })).status, 200)
  release()
})

for (const query of ['', '?at=2024-05-01T10:00:00']) {
  test(`GET /pod/ip/{ip} 503: the table is locked for longer than a statement may take${query && ', with a time'}`, async () => {
    await whileRefused(guarded.sql, 'pod_address', async () =>
      assertDatabaseBusy(await guarded.get(`/pod/ip/10.0.0.1${query}`, { token })),
    )
    assert.notEqual((await guarded.get(`/pod/ip/10.0.0.1${query}`, { token })).status, 503)
  })
}
