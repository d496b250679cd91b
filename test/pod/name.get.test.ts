import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { POD_KEYS, podPost, wholePodPost } from '../support/records.ts'
import { assertDatabaseBusy, assertNoData, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const named = (name: string) => app.get(`/pod/name/${encodeURIComponent(name)}`)
const store = async (fields: Record<string, unknown>) =>
  assert.equal((await app.post('/pod/spec', podPost(fields))).status, 200)

test('GET /pod/name/{name} 404: no pod has the name', async () => {
  await store({ pod_name: 'web-1' })
  for (const name of ['nobody', 'web', 'web-1 ', 'WEB-1', 'web-%', 'web-_', "web-1' --"])
    assertNoData(await named(name))
})

test('GET /pod/name/{name} 200: one record, its keys in wire order', async () => {
  const whole = wholePodPost({ pod_ips: ['fd00::1'] })
  await store(whole)
  const answer = await named(whole.pod_name)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.deepEqual(Object.keys(answer.json), POD_KEYS)
  assert.deepEqual(answer.json, { ...whole, pod_ips: [whole.pod_ip, 'fd00::1'] })
})

test('GET /pod/name/{name} 200: fields without a value are null', async () => {
  await store({ pod_name: 'bare', pod_ip: '' })
  const { json } = await named('bare')
  assert.deepEqual(Object.keys(json), POD_KEYS)
  const { pod_name, pod_ip, time_stamp, node_name, is_dead, pod_ips, ...rest } = json
  assert.deepEqual(
    [pod_name, pod_ip, time_stamp, node_name, is_dead, pod_ips],
    ['bare', '', '2024-05-01T10:00:00', 'node-1', false, []],
  )
  assert.deepEqual(new Set(Object.values(rest)), new Set([null]))
})

test('GET /pod/name/{name} 200: the answer shows whether the pod is alive or dead', async () => {
  await store({ pod_name: 'going' })
  assert.equal((await named('going')).json.is_dead, false)
  await app.post('/pod/mark_dead', { pod_name: 'going' })
  assert.equal((await named('going')).json.is_dead, true)
  await store({ pod_name: 'going', node_name: 'node-2' })
  const { json } = await named('going')
  assert.deepEqual([json.is_dead, json.node_name], [false, 'node-2'])
})

test('GET /pod/name/{name} 200: a name of any characters, percent-encoded', async () => {
  for (const pod_name of [
    'a/b',
    'a b',
    'a%2Fb',
    '100%',
    '%41',
    'ключ',
    '🐘',
    'a?b#c',
    'a"b\\c',
    '.a',
    'info',
    '元'.repeat(253),
  ]) {
    await store({ pod_name })
    const answer = await named(pod_name)
    assert.equal(answer.status, 200, pod_name)
    assert.equal(answer.json.pod_name, pod_name)
  }
})

test('GET /pod/name/{name} 404: bad percent-encoding, and a name longer than that of any pod', async () => {
  for (const path of ['%zz', '%', '%FF', '%C3', '%ED%A0%80', 'n'.repeat(5_000)])
    assertNoData(await app.get(`/pod/name/${path}`))
})

test('GET /pod/name/{name} 400: U+0000 in the name', async () => {
  const answer = await app.get('/pod/name/a%00b')
  assert.equal(answer.status, 400)
  assert.match(answer.text, /^Path deserialize error: name: U\+0000/)
})

test('GET /pod/name/{name} 404: without a name, or with more of a path, there is no such route', async () => {
  for (const path of ['/pod/name', '/pod/name/', '/pod/name/a/b']) {
    const answer = await app.get(path)
    assert.deepEqual([answer.status, answer.text], [404, ''])
  }
})

test('GET /pod/name/{name} 200: many look-ups at once each get their own answer', async () => {
  const all = Array.from({ length: 150 }, (_, i) => `many-${i}`)
  await Promise.all(all.filter((_, i) => i % 3 > 0).map((pod_name) => store({ pod_name })))
  const answers = await Promise.all([...all, ...all].map((name) => named(name)))
  answers.forEach((answer, i) => {
    if ((i % 150) % 3 === 0) assertNoData(answer)
    else assert.equal(answer.json.pod_name, all[i % 150])
  })
})

test('GET /pod/name/{name} 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/pod/name/web'))
  assertUnauthorized(await guarded.get('/pod/name/a%00b', { token: 'unknown' }))
})

test('GET /pod/name/{name} 200: every token may read, and the read budget is not charged', async () => {
  await guarded.post('/pod/spec', podPost({ pod_name: 'web' }), { token: TOKENS.BROKER_TOKEN_INGEST })
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib)
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/pod/name/web', { token: one })).status, 200)
  release()
})

test('GET /pod/name/{name} 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'pod', async () => {
    const answers = await Promise.all(
      ['web', 'web', 'other'].map((name) => guarded.get(`/pod/name/${name}`, { token })),
    )
    for (const answer of answers) assertDatabaseBusy(answer)
  })
  assert.equal((await guarded.get('/pod/name/web', { token })).status, 200)
})
