import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { startLossyApp } from '../support/lossy.ts'
import { assertDatabaseBusy, assertForbidden, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)
const lossy = await startLossyApp()

const path = (name: string, namespace = 'shop') => `/seccomp/crs/${namespace}/${name}`
const put = async (name: string, namespace?: string) =>
  assert.equal((await app.request('PUT', path(name, namespace), { body: { spec: {} } })).status, 200)
const left = async () =>
  (await app.sql`select namespace || '/' || name as key from seccomp_cr order by 1`).map(({ key }) => key)

test('DELETE /seccomp/crs/{namespace}/{name} 200: deletes once, and only the named resource', async () => {
  await put('web')
  await put('web', 'bank')
  await put('api')
  const answer = await app.request('DELETE', path('web'))
  assert.deepEqual([answer.status, answer.text], [200, '{"deleted":true}'])
  assert.deepEqual(await left(), ['bank/web', 'shop/api'])
  assert.equal((await app.request('DELETE', path('web'))).status, 404)
})

test('DELETE /seccomp/crs/{namespace}/{name} 404: a missing resource, in plain text', async () => {
  const answer = await app.request('DELETE', path('nothing'))
  assert.deepEqual([answer.status, answer.text], [404, 'There is no such resource.'])
  assert.match(answer.headers.get('content-type')!, /^text\/plain/)
})

test('DELETE /seccomp/crs/{namespace}/{name} 200: of many simultaneous requests one succeeds', async () => {
  await put('crowd')
  const answers = await Promise.all(Array.from({ length: 10 }, () => app.request('DELETE', path('crowd'))))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(9).fill(404)])
})

test('DELETE /seccomp/crs/{namespace}/{name} 200: with simultaneous PUTs the result is that of some order', async () => {
  for (let round = 0; round < 10; round++) {
    const name = `beside-${round}`
    await put(name)
    const [deleted, written] = await Promise.all([
      app.request('DELETE', path(name)),
      app.request('PUT', path(name), { body: { spec: {}, hash: 'h2' } }),
    ])
    assert.deepEqual([deleted.status, written.status], [200, 200])
    const rows = await app.sql`select hash from seccomp_cr where name = ${name}`
    assert.ok(rows.length === 0 || rows[0]!.hash === 'h2')
  }
})

test('DELETE /seccomp/crs/{namespace}/{name} 200: the answer of the database was lost after the deletion', async () => {
  const request = (method: string, name: string) =>
    lossy.app.request(path(name), {
      method,
      ...(method === 'PUT' ? { headers: { 'content-type': 'application/json' }, body: '{"spec":{}}' } : {}),
    })
  for (const fate of ['answer lost', 'question lost'] as const) {
    assert.equal((await request('PUT', 'lost')).status, 200)
    lossy.lose('delete from seccomp_cr', fate)
    const answer = await request('DELETE', 'lost')
    assert.deepEqual([answer.status, await answer.text(), lossy.toCome], [200, '{"deleted":true}', 0])
    assert.equal((await lossy.sql`select from seccomp_cr`).length, 0)
  }
})

test('DELETE /seccomp/crs/{namespace}/{name} 400: names that Kubernetes does not allow', async () => {
  for (const one of ['Upper', 'a_b', '-a', '%00']) {
    assert.match((await app.request('DELETE', path('web', one))).text, /^Path deserialize error: namespace: /)
    assert.equal((await app.request('DELETE', path(one))).status, 400)
  }
})

test('DELETE /seccomp/crs/{namespace}/{name} 401: no token', async () => {
  assertUnauthorized(await guarded.request('DELETE', path('web')))
})

test('DELETE /seccomp/crs/{namespace}/{name} 403: a token without the scope', async () => {
  assertForbidden(await guarded.request('DELETE', path('web'), { token: TOKENS.BROKER_TOKEN_READ }), 'ingest')
})

test('DELETE /seccomp/crs/{namespace}/{name} 503: the database is busy', async () => {
  await whileRefused(guarded.sql, 'seccomp_cr', async () => {
    assertDatabaseBusy(await guarded.request('DELETE', path('web'), { token: TOKENS.BROKER_TOKEN_INGEST }))
  })
})
