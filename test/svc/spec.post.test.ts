import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { MAX_BODY_DEPTH } from '../../lib/limits/limits.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { SERVICE_KEYS, servicePost } from '../support/records.ts'
import {
  acceptedSpellings,
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  BAD_TIMES,
  GOOD_TIMES,
  refusedBodies,
  startReplica,
  whileRefused,
} from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS)
const replicas = [startReplica(app), startReplica(app)]
after(() => Promise.all(replicas.map((replica) => replica.end())))

const post = (body: unknown) => app.post('/svc/spec', body)
const stored = async (ip: string) => (await app.get(`/svc/ip/${encodeURIComponent(ip)}`)).json
const posted = async (fields: Record<string, unknown> = {}) => {
  const answer = await post(servicePost(fields))
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(answer.json, await stored(answer.json.svc_ip))
  return answer.json
}
/** Posts both records under one address, in this order and a second apart, and returns what is stored. */
const storedAfter = async (first: object, second: object) => {
  const { svc_ip } = servicePost()
  await posted({ ...first, svc_ip })
  assert.equal((await post(servicePost({ time_stamp: '2024-05-01T10:00:01', ...second, svc_ip }))).status, 200)
  return stored(svc_ip)
}
const version = async (ip: string) =>
  (await app.sql`select xmin::text, ctid::text from service where svc_ip = ${ip}`)[0]
const uid = async (ip: string) =>
  (await app.sql<{ svc_uid: string }[]>`select svc_uid from service where svc_ip = ${ip}`)[0]!.svc_uid
const serviceCount = async () => Number((await app.sql`select count(*) from service`)[0]!.count)
const range = (n: number) => Array.from({ length: n }, (_, i) => i)
const whole = (fields: Record<string, unknown> = {}) =>
  servicePost({
    ...{ svc_name: 'cart', svc_namespace: 'shop' },
    service_spec: {
      kind: 'Service',
      metadata: { name: 'cart', uid: 'uid-1' },
      spec: { selector: { app: 'cart' }, ports: [{ port: 80 }] },
    },
    ...fields,
  })

test('POST /svc/spec 200: the answer is the record as posted, its keys in wire order', async () => {
  const body = whole()
  const answer = await post(body)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.deepEqual(Object.keys(answer.json), SERVICE_KEYS)
  assert.deepEqual(answer.json, body)
  assert.deepEqual(await stored(body.svc_ip), body)
})

test('POST /svc/spec 200: a field that was not sent is null in the answer, even if a value is stored', async () => {
  const body = whole()
  await post(body)
  const { svc_ip, time_stamp } = body
  const answer = await post({ svc_ip, time_stamp })
  assert.deepEqual(Object.keys(answer.json), SERVICE_KEYS)
  assert.deepEqual(answer.json, { svc_ip, svc_name: null, svc_namespace: null, service_spec: null, time_stamp })
  assert.deepEqual(await stored(svc_ip), body)
})

const OPTIONAL = {
  svc_name: ['cart', 'till'],
  svc_namespace: ['shop', ''],
  service_spec: [{ spec: { ports: [] } }, {}],
}
for (const [key, [first, second]] of Object.entries(OPTIONAL)) {
  test(`POST /svc/spec 200: ${key} is kept when it is absent or null, and replaced when it is sent`, async () => {
    assert.deepEqual((await storedAfter({ [key]: first }, {}))[key], first)
    assert.deepEqual((await storedAfter({ [key]: first }, { [key]: null }))[key], first)
    assert.deepEqual((await storedAfter({ [key]: first }, { [key]: second }))[key], second)
    assert.deepEqual((await storedAfter({}, { [key]: second }))[key], second)
  })
}

test('POST /svc/spec 200: the time is always replaced, even by an earlier one', async () => {
  assert.equal((await storedAfter({}, { time_stamp: '2020-01-01T00:00:00' })).time_stamp, '2020-01-01T00:00:00')
})

for (const svc_ip of ['', 'None']) {
  test(`POST /svc/spec 200: the address ${JSON.stringify(svc_ip)} is echoed as posted and logged as a warning, but not written`, async () => {
    const before = await serviceCount()
    const body = whole({ svc_ip, service_spec: { status: { x: 1 }, metadata: { managedFields: [] } } })
    app.logged.length = 0
    const answer = await post(body)
    assert.equal(answer.status, 200)
    assert.deepEqual(Object.keys(answer.json), SERVICE_KEYS)
    assert.deepEqual(answer.json, body)
    assert.equal(await serviceCount(), before)
    assert.equal(app.logged.filter((line) => line.level === 40).length, 1)
  })
}

test('POST /svc/spec 400: a service without an address that is nested too deep to be echoed', async () => {
  const text = JSON.stringify(servicePost({ svc_ip: 'None', service_spec: {} }))
  const answer = await post(text.replace('{}', `{"status":${'['.repeat(30_000)}${']'.repeat(30_000)}}`))
  assert.equal(answer.status, 400, answer.text)
  assert.match(answer.text, /^Json deserialize error: service_spec: nested deeper/)
})

test('POST /svc/spec 200: `none` in another spelling is stored as an address', async () => {
  for (const svc_ip of ['none', 'NONE', ' None', ' ']) assert.equal((await posted({ svc_ip })).svc_ip, svc_ip)
})

test('POST /svc/spec 200: the address is canonicalised, so its spellings are one service', async () => {
  const before = await serviceCount()
  const spellings = ['FD20:0:0::000A', 'fd20::a', 'fd20:0:0:0:0:0:0:a']
  for (const svc_ip of spellings) assert.equal((await posted({ svc_ip })).svc_ip, 'fd20::a')
  for (const svc_ip of ['10.96.200.1', '::ffff:10.96.200.1', '::FFFF:0a60:c801'])
    assert.equal((await posted({ svc_ip })).svc_ip, '10.96.200.1')
  assert.equal(await serviceCount(), before + 2)
})

const SPECS: [sent: object, kept: object][] = [
  [
    {
      apiVersion: 'v1',
      metadata: { uid: 'u', managedFields: [{}], annotations: { a: '1' } },
      spec: { type: 'ClusterIP', status: 'kept' },
      status: { loadBalancer: {} },
    },
    { apiVersion: 'v1', metadata: { uid: 'u', annotations: { a: '1' } }, spec: { type: 'ClusterIP', status: 'kept' } },
  ],
  [{ status: 1 }, {}],
  [
    { metadata: 'text', managedFields: [] },
    { metadata: 'text', managedFields: [] },
  ],
  [{ metadata: { managedFields: 1 } }, { metadata: {} }],
  [{}, {}],
]
for (const [sent, kept] of SPECS) {
  test(`POST /svc/spec 200: the service object is compacted to ${JSON.stringify(kept)}`, async () => {
    assert.deepEqual((await posted({ service_spec: sent })).service_spec, kept)
  })
}

test('POST /svc/spec 200: the column svc_uid follows the uid in service_spec', async () => {
  const { svc_ip } = servicePost()
  const expected: [fields: object, uid: string | null][] = [
    [{}, null],
    [{ service_spec: { metadata: { uid: 'one' } } }, 'one'],
    [{ svc_name: 'x' }, 'one'],
    [{ time_stamp: '2024-05-01T10:00:02' }, 'one'],
    [{ service_spec: null, svc_name: 'y' }, 'one'],
    [{ service_spec: { metadata: { uid: 'two' } } }, 'two'],
    [{ service_spec: { metadata: { uid: '' } } }, null],
    [{ service_spec: { metadata: { uid: 'three' } } }, 'three'],
    [{ service_spec: {} }, null],
  ]
  for (const [fields, value] of expected) {
    await post(servicePost({ ...fields, svc_ip }))
    assert.equal(await uid(svc_ip), value)
  }
})

test('POST /svc/spec 200: a repeated post writes nothing, even with fewer keys', async () => {
  const body = whole()
  await post(body)
  const before = await version(body.svc_ip)
  await post(body)
  await post({ svc_ip: body.svc_ip, time_stamp: body.time_stamp })
  assert.equal(await replicas[0]!.post('/svc/spec', body), 200)
  assert.deepEqual(await version(body.svc_ip), before)
})

test('POST /svc/spec 200: a change of any one key is written', async () => {
  const first = whole()
  const changes = {
    svc_name: 'till',
    svc_namespace: 'bank',
    service_spec: { spec: {} },
    time_stamp: '2024-05-01T10:00:00.000001',
  }
  for (const [key, value] of Object.entries(changes)) {
    await post(first)
    const before = await version(first.svc_ip)
    const answer = await post({ ...first, [key]: value })
    assert.deepEqual(await stored(first.svc_ip), answer.json, key)
    assert.notDeepEqual(await version(first.svc_ip), before, key)
  }
})

for (const [sent, shown] of Object.entries(GOOD_TIMES)) {
  test(`POST /svc/spec 200: the time ${sent} is shown as ${shown}`, async () => {
    assert.equal((await posted({ time_stamp: sent })).time_stamp, shown)
  })
}

test('POST /svc/spec 200: text of any script, unknown keys and fields of the greatest length are accepted', async () => {
  const odd = 'ключ "q" \\ / 🐘 \u{1}\u{2028}\'; drop table service; --'
  const row = await posted({ svc_name: odd, svc_namespace: odd, service_spec: { [odd]: [odd] }, unknown: { a: 1 } })
  assert.deepEqual([row.svc_name, row.svc_namespace, row.service_spec], [odd, odd, { [odd]: [odd] }])
  const long = '元'.repeat(253)
  assert.equal((await posted({ svc_ip: '元'.repeat(128), svc_name: long, svc_namespace: long })).svc_name, long)
})

for (const { what, body, headers } of acceptedSpellings(servicePost({ svc_ip: '10.96.201.1' }))) {
  test(`POST /svc/spec 200: takes ${what}`, async () => {
    await app.sql`delete from service where svc_ip = '10.96.201.1'`
    const answer = await app.request('POST', '/svc/spec', { body, headers })
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await stored('10.96.201.1')).svc_ip, '10.96.201.1')
  })
}

const unwritten = servicePost({ svc_ip: '10.96.202.1', svc_name: 'text' })
for (const { what, status, says, ...request } of refusedBodies(unwritten, 'svc_name')) {
  test(`POST /svc/spec ${status}: ${what}, and nothing is written`, async () => {
    const answer = await app.request('POST', '/svc/spec', request)
    assert.equal(answer.status, status, answer.text)
    assert.match(answer.text, says)
    assert.match(answer.headers.get('content-type')!, /^text\/plain/)
    assert.equal((await app.get('/svc/ip/10.96.202.1')).status, 404)
  })
}

const BAD_FIELDS: Record<string, unknown[]> = {
  svc_ip: [undefined, null, 10, [], '1'.repeat(129)],
  time_stamp: [undefined, null, 1_714_554_000, ...BAD_TIMES],
  svc_name: [7, {}, 'n'.repeat(254)],
  svc_namespace: [7, [], 'n'.repeat(254)],
  service_spec: ['text', 7, true, [], [{}]],
}
for (const [field, values] of Object.entries(BAD_FIELDS)) {
  test(`POST /svc/spec 400: a bad ${field} is named, and nothing is written`, async () => {
    const before = await serviceCount()
    for (const value of values) {
      const answer = await post(servicePost({ [field]: value }))
      assert.equal(answer.status, 400, JSON.stringify(value))
      assert.ok(answer.text.startsWith(`Json deserialize error: ${field}: `), answer.text)
    }
    assert.equal(await serviceCount(), before)
  })
}

const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
test('POST /svc/spec 400: service_spec nested deeper than 100 levels, and nothing is written', async () => {
  await posted({ service_spec: nested(100) })
  const body = servicePost({ service_spec: nested(101) })
  const answer = await post(body)
  assert.equal(answer.status, 400)
  assert.match(answer.text, /^Json deserialize error: service_spec: nested deeper than 100 levels/)
  assert.equal((await app.get(`/svc/ip/${body.svc_ip}`)).status, 404)
  const bottomless = JSON.stringify(servicePost({ service_spec: {} })).replace(
    '{}',
    `{"a":${'['.repeat(3e5)}${']'.repeat(3e5)}}`,
  )
  const refused = await post(bottomless)
  assert.deepEqual(
    [refused.status, refused.text],
    [400, `Json deserialize error: nested deeper than ${MAX_BODY_DEPTH} levels`],
  )
})

test('POST /svc/spec 200: a part of the service object that is dropped may be nested as deep as the limit of a body', async () => {
  const text = JSON.stringify(servicePost({ service_spec: { spec: {}, status: 0 } }))
  assert.deepEqual(
    (await post(text.replace(':0}', `:${'['.repeat(MAX_BODY_DEPTH - 2)}${']'.repeat(MAX_BODY_DEPTH - 2)}}`))).json
      .service_spec,
    { spec: {} },
  )
})

test('POST /svc/spec 400: a number beyond a double is named, and nothing is written', async () => {
  assert.deepEqual(
    (await posted({ service_spec: { n: [1.7976931348623157e308, -0.5] } })).service_spec.n,
    [1.7976931348623157e308, -0.5],
  )
  for (const number of ['1e309', '-1e309']) {
    const body = servicePost({ service_spec: { spec: { ports: [{ port: 7 }] } } })
    const answer = await post(JSON.stringify(body).replace(':7}', `:${number}}`))
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Json deserialize error: service_spec\.spec\.ports\[0\]\.port: number out of range/)
    assert.equal((await app.get(`/svc/ip/${body.svc_ip}`)).status, 404)
  }
})

test('POST /svc/spec 400: text that PostgreSQL cannot store, in any field', async () => {
  const before = await serviceCount()
  const places = [
    ...['svc_ip', 'svc_name', 'svc_namespace'].map((key) => ({ [key]: '@' })),
    ...[
      { service_spec: { metadata: { uid: '@' } } },
      { service_spec: { '@': 1 } },
      { service_spec: { spec: { list: [['@']] } } },
      { service_spec: { status: '@' }, svc_ip: 'None' },
    ],
  ]
  for (const fields of places) {
    for (const bad of ['\\u0000', 'a\\ud83d', '\\udE00b']) {
      const answer = await post(JSON.stringify(servicePost(fields)).replace('@', bad))
      assert.equal(answer.status, 400, JSON.stringify(fields))
      assert.ok(answer.text.includes(Object.keys(fields)[0]!), answer.text)
    }
  }
  assert.equal(await serviceCount(), before)
})

test('POST /svc/spec 200: text that PostgreSQL cannot store, in the parts of the object that are dropped', async () => {
  for (const bad of ['a\0b', '\ud83d']) {
    const status = { conditions: [{ message: bad }] }
    const answer = await post(
      servicePost({ service_spec: { metadata: { uid: 'u', managedFields: [{ [bad]: bad }] }, status } }),
    )
    assert.deepEqual([answer.status, answer.json.service_spec], [200, { metadata: { uid: 'u' } }])
  }
})

test('POST /svc/spec 200: integers beyond 2^53 keep their digits, in the answer and on every read', async () => {
  const kept = '{"metadata":{"uid":9007199254740993,"n":[-9223372036854775808]},"spec":{"x":18446744073709551615}}'
  const { svc_ip, ...rest } = servicePost({ service_spec: 0 })
  const text = (address: string) =>
    JSON.stringify({ svc_ip: address, ...rest }).replace('"service_spec":0', `"service_spec":${kept}`)
  const answers = await Promise.all([post(servicePost()), post(text(svc_ip)), post(servicePost())])
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
  for (const answer of [
    answers[1]!,
    await app.get(`/svc/ip/${svc_ip}`),
    await app.get('/svc/info'),
    await post(text('None')),
  ])
    assert.ok(answer.text.includes(`${kept},`), answer.text)
  assert.equal(await uid(svc_ip), null)
})

test('POST /svc/spec 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.post('/svc/spec', servicePost()))
  assertUnauthorized(await guarded.post('/svc/spec', 'not read', { token: 'unknown' }))
  assert.deepEqual([...(await guarded.sql`select from service`)], [])
})

test('POST /svc/spec 403: a token without the scope ingest', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_SUPPLYCHAIN])
    assertForbidden(await guarded.post('/svc/spec', servicePost(), { token }), 'ingest')
  assert.deepEqual([...(await guarded.sql`select from service`)], [])
})

test('POST /svc/spec 200: the token of agents and the shared token of older installations are accepted', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN])
    assert.equal((await guarded.post('/svc/spec', servicePost(), { token })).status, 200)
})

test('POST /svc/spec 503: the table is locked for longer than a statement may take; the next post succeeds', async () => {
  const token = TOKENS.BROKER_TOKEN_INGEST
  const body = servicePost()
  await whileRefused(guarded.sql, 'service', async () =>
    assertDatabaseBusy(await guarded.post('/svc/spec', body, { token })),
  )
  assert.equal((await guarded.get(`/svc/ip/${body.svc_ip}`, { token })).status, 404)
  assert.equal((await guarded.post('/svc/spec', body, { token })).status, 200)
})

test('POST /svc/spec 200: 24 concurrent posts of one address leave one row, equal to one of the posts', async () => {
  const { svc_ip } = servicePost()
  const bodies = range(24).map((i) =>
    whole({ svc_ip, svc_name: `svc-${i}`, service_spec: { metadata: { uid: `uid-${i}` } } }),
  )
  assert.deepEqual(
    new Set(await Promise.all(bodies.map((body, i) => replicas[i % 2]!.post('/svc/spec', body)))),
    new Set([200]),
  )
  const row = await stored(svc_ip)
  const winner = bodies.find((body) => body.svc_name === row.svc_name)!
  assert.deepEqual(row, winner)
  assert.equal(await uid(svc_ip), (winner.service_spec as { metadata: { uid: string } }).metadata.uid)
})

test('POST /svc/spec 200: two processes that write the same services in opposite orders both succeed', async () => {
  const services = range(60).map(() => whole())
  const orders = [services, [...services].reverse()]
  for (const time_stamp of ['2024-05-01T10:00:01', '2024-05-01T10:00:02']) {
    const posts = orders.flatMap((order, i) =>
      order.map((body) => replicas[i]!.post('/svc/spec', { ...body, time_stamp })),
    )
    assert.deepEqual(new Set(await Promise.all(posts)), new Set([200]))
  }
  for (const { svc_ip } of services) assert.equal((await stored(svc_ip)).time_stamp, '2024-05-01T10:00:02')
})
