import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { assertNoData, assertUnauthorized } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS)
const one = {
  pod_name: 'web-1',
  pod_namespace: 'shop',
  syscalls: ['read', 'write'],
  arch: 'aarch64',
  time_stamp: '2026-01-01T09:00:00.123456',
}
await app.post('/pod/syscalls', [one])

test('GET /pod/syscalls/{name} 200: an array of one record, its keys in wire order, names joined with commas', async () => {
  const answer = await app.get('/pod/syscalls/web-1')
  assert.equal(answer.status, 200)
  assert.deepEqual(Object.keys(answer.json[0]), ['pod_name', 'pod_namespace', 'syscalls', 'arch', 'time_stamp'])
  assert.deepEqual(answer.json, [{ ...one, syscalls: 'read,write' }])
})

test('GET /pod/syscalls/{name} 200: many look-ups at once, each with its own answer', async () => {
  const found = await Promise.all(Array.from({ length: 100 }, (_, i) => app.get(`/pod/syscalls/web-${i % 2}`)))
  assert.deepEqual(
    found.map((answer) => answer.status),
    found.map((_, i) => (i % 2 ? 200 : 404)),
  )
})

test('GET /pod/syscalls/{name} 400: U+0000 in the name', async () => {
  const answer = await app.get('/pod/syscalls/a%00b')
  assert.equal(answer.status, 400)
  assert.match(answer.text, /name: U\+0000/)
})

test('GET /pod/syscalls/{name} 401: no token', async () => {
  assertUnauthorized(await guarded.get('/pod/syscalls/web-1'))
})

test('GET /pod/syscalls/{name} 404: every token may read', async () => {
  for (const token of Object.values(TOKENS))
    assert.equal((await guarded.get('/pod/syscalls/web-1', { token })).status, 404)
})

test('GET /pod/syscalls/{name} 404: an unknown pod', async () => {
  assertNoData(await app.get('/pod/syscalls/nobody'))
})
