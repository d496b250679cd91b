import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { SERVICE_KEYS, servicePost } from '../support/records.ts'
import { assertDatabaseBusy, assertNoData, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const service = (ip: string) => app.get(`/svc/ip/${encodeURIComponent(ip)}`)
const store = async (fields: Record<string, unknown>) =>
  assert.equal((await app.post('/svc/spec', servicePost(fields))).status, 200)

test('GET /svc/ip/{ip} 404: no service has the address', async () => {
  await store({ svc_ip: '10.96.0.11' })
  await store({ svc_ip: 'None' })
  for (const ip of ['10.96.0.1', '10.96.0.111', '10.96.0.%', 'None', 'fd00::1']) assertNoData(await service(ip))
})

test('GET /svc/ip/{ip} 200: one record, its keys in wire order', async () => {
  const whole = servicePost({
    svc_name: 'cart',
    svc_namespace: 'shop',
    service_spec: { spec: { ports: [{ port: 80 }] } },
  })
  await store(whole)
  const answer = await service(whole.svc_ip)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.deepEqual(Object.keys(answer.json), SERVICE_KEYS)
  assert.deepEqual(answer.json, whole)
})

test('GET /svc/ip/{ip} 200: fields without a value are null', async () => {
  const bare = servicePost()
  await store(bare)
  const { json } = await service(bare.svc_ip)
  assert.deepEqual(Object.keys(json), SERVICE_KEYS)
  assert.deepEqual(json, { ...bare, svc_name: null, svc_namespace: null, service_spec: null })
})

test('GET /svc/ip/{ip} 200: the address is canonicalised before the look-up', async () => {
  await store({ svc_ip: 'fd00::a:1' })
  for (const ip of ['fd00::a:1', 'FD00::A:1', 'fd00:0:0:0:0:0:000a:1'])
    assert.equal((await service(ip)).json.svc_ip, 'fd00::a:1')
  assert.equal((await app.get('/svc/ip/FD00::a:1')).status, 200)
  await store({ svc_ip: '::ffff:10.96.1.1' })
  for (const ip of ['10.96.1.1', '::FFFF:10.96.1.1', '::ffff:a60:101'])
    assert.equal((await service(ip)).json.svc_ip, '10.96.1.1')
  assertNoData(await service('::10.96.1.1'))
})

test('GET /svc/ip/{ip} 400: U+0000 in the address', async () => {
  const answer = await app.get('/svc/ip/10.96.0.11%00')
  assert.equal(answer.status, 400)
  assert.match(answer.text, /^Path deserialize error: ip: U\+0000/)
})

test('GET /svc/ip/{ip} 404: without an address, or with more of a path, there is no such route', async () => {
  for (const path of ['/svc/ip', '/svc/ip/', '/svc/ip/10.96.0.0/12']) {
    const answer = await app.get(path)
    assert.deepEqual([answer.status, answer.text], [404, ''])
  }
})

test('GET /svc/ip/{ip} 200: many look-ups at once each get their own answer', async () => {
  const all = Array.from({ length: 100 }, (_, i) => `10.97.0.${i}`)
  await Promise.all(all.filter((_, i) => i % 2).map((svc_ip) => store({ svc_ip })))
  const answers = await Promise.all(all.map(service))
  answers.forEach((answer, i) => {
    if (i % 2) assert.equal(answer.json.svc_ip, all[i])
    else assertNoData(answer)
  })
})

test('GET /svc/ip/{ip} 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/svc/ip/10.96.0.1'))
  assertUnauthorized(await guarded.get('/svc/ip/10.96.0.1%00', { token: 'unknown' }))
})

test('GET /svc/ip/{ip} 200: every token may read, and the read budget is not charged', async () => {
  await guarded.post('/svc/spec', servicePost({ svc_ip: '10.96.0.1' }), { token: TOKENS.BROKER_TOKEN_INGEST })
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib)
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/svc/ip/10.96.0.1', { token: one })).status, 200)
  release()
})

test('GET /svc/ip/{ip} 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'service', async () =>
    assertDatabaseBusy(await guarded.get('/svc/ip/10.96.0.1', { token })),
  )
  assert.equal((await guarded.get('/svc/ip/10.96.0.1', { token })).status, 200)
})
