import assert from 'node:assert/strict'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import openApiRoute from '../handlers/openapi.get.ts'
import { createApp } from '../lib/app/app.ts'
import { access } from '../lib/http/access.ts'
import { route } from '../lib/http/route.ts'
import { GZIP_MIN_BYTES } from '../lib/limits/limits.ts'
import { startApp, TOKENS } from './support/app.ts'
import { document } from './support/contract.ts'
import { assertUnauthorized } from './support/routes.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)

test('GET /openapi.json 200: the document of the routes', async () => {
  const answer = await app.get('/openapi.json')
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.deepEqual(answer.json, document)
})

test('GET /openapi.json 200: the same bytes each time', async () => {
  assert.equal(
    (await app.get('/openapi.json')).text,
    (await guarded.get('/openapi.json', { token: TOKENS.BROKER_TOKEN_READ })).text,
  )
})

test('GET /openapi.json 200: compressed if the client accepts gzip', async () => {
  const answer = await app.app.request('/openapi.json', { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(answer.headers.get('content-encoding'), 'gzip')
  assert.deepEqual(JSON.parse(gunzipSync(Buffer.from(await answer.arrayBuffer())).toString()), document)
})

test('GET /openapi.json 200: compression follows the rule in its description', async () => {
  const said = `A 200 in JSON or YAML of ${GZIP_MIN_BYTES} bytes or more comes as gzip to those who accept it.`
  assert.ok((document.info as { description: string }).description.includes(said))
  const token = TOKENS.BROKER_TOKEN_READ
  const longError = `/audit/verdicts?verdict=${'x'.repeat(GZIP_MIN_BYTES)}`
  for (const [path, sent, status, isPacked] of [
    ['/openapi.json', token, 200, true],
    ['/version', token, 200, false],
    ['/health', token, 200, false],
    ['/metrics', token, 200, false],
    ['/openapi.json', 'unknown', 401, false],
    [longError, token, 400, false],
  ] as const) {
    const { headers, ...answer } = await guarded.get(path, { token: sent, headers: { 'accept-encoding': 'gzip' } })
    assert.deepEqual(
      [answer.status, headers.get('content-encoding')],
      [status, isPacked ? 'gzip' : null],
      path.slice(0, 40),
    )
  }
  for (const path of ['/metrics', longError])
    assert.ok((await guarded.get(path, { token })).text.length >= GZIP_MIN_BYTES)
})

test('GET /openapi.json 200: HEAD has its length and no body', async () => {
  const answer = await app.request('HEAD', '/openapi.json')
  assert.equal(answer.status, 200)
  assert.equal(answer.text, '')
  assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(JSON.stringify(document))))
})

test('GET /openapi.json 200: the routes of the app that is requested, including undocumented ones', async () => {
  const odd = createApp(app.deps, [openApiRoute, route().get('/odd/:one', access('open'), (c) => c.text('x'))])
  const { paths } = (await (await odd.request('/openapi.json')).json()) as typeof document
  assert.deepEqual(Object.keys(paths), ['/odd/{one}', '/openapi.json'])
  assert.equal((await odd.request('/odd/1')).status, 200)
})

test('GET /openapi.json 200: without a database', async () => {
  const { db, ...rest } = app.deps
  const alone = createApp({ ...rest, db: {} as typeof db }, [openApiRoute])
  assert.equal((await alone.request('/openapi.json')).status, 200)
})

test('GET /openapi.json 200: every token may read', async () => {
  for (const token of Object.values(TOKENS)) assert.equal((await guarded.get('/openapi.json', { token })).status, 200)
})

test('GET /openapi.json 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/openapi.json'))
  assertUnauthorized(await guarded.get('/openapi.json', { token: 'unknown' }))
})
