import assert from 'node:assert/strict'
import test from 'node:test'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { access, declaredRoutes } from '../../lib/http/access.ts'
import { sendJson } from '../../lib/http/response/respond.ts'
import { route } from '../../lib/http/route.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { assertForbidden, assertUnauthorized } from '../support/routes.ts'

const open = await startApp()
const guarded = await startApp(TOKENS)
const mounts = [
  route().get('/open', access('open'), (c) => sendJson(c, '"open"')),
  route().get('/read/:name', access('read'), (c) => sendJson(c, JSON.stringify(c.req.param('name')))),
  route().post('/ingest', access('ingest'), (c) => sendJson(c, '"ingest"')),
  route().post('/supply', access('supplychain'), (c) => sendJson(c, '"supply"')),
  route().post('/admin', access('admin'), (c) => sendJson(c, '"admin"')),
]
const withAuth = createApp(guarded.deps, mounts)
const withoutAuth = createApp(open.deps, mounts)

async function ask(app: typeof withAuth, method: string, path: string, authorization?: string) {
  const answer = await app.request(path, { method, headers: authorization ? { authorization } : {} })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, json: undefined }
}
const bearer = (variable: keyof typeof TOKENS) => `Bearer ${TOKENS[variable]}`

test('each token gives access to the routes of its scopes and to no other', async () => {
  const reach = {
    BROKER_TOKEN_READ: { 'GET /read/x': true, 'POST /ingest': false, 'POST /supply': false, 'POST /admin': false },
    BROKER_TOKEN_INGEST: { 'GET /read/x': true, 'POST /ingest': true, 'POST /supply': false, 'POST /admin': false },
    BROKER_TOKEN_SUPPLYCHAIN: {
      'GET /read/x': true,
      'POST /ingest': false,
      'POST /supply': true,
      'POST /admin': false,
    },
    BROKER_TOKEN_ADMIN: { 'GET /read/x': true, 'POST /ingest': true, 'POST /supply': true, 'POST /admin': true },
    BROKER_AUTH_TOKEN: { 'GET /read/x': true, 'POST /ingest': true, 'POST /supply': false, 'POST /admin': false },
  }
  for (const [variable, routesOf] of Object.entries(reach)) {
    for (const [name, isOpen] of Object.entries(routesOf)) {
      const [method, path] = name.split(' ') as [string, string]
      const answer = await ask(withAuth, method, path, bearer(variable as keyof typeof TOKENS))
      if (isOpen) assert.equal(answer.status, 200, `${variable} ${name}`)
      else assertForbidden(answer, path === '/supply' ? 'supplychain' : path.slice(1))
    }
  }
})

test('without a known token every route except the open ones is 401 with WWW-Authenticate', async () => {
  for (const authorization of [
    undefined,
    'Bearer unknown-token',
    TOKENS.BROKER_TOKEN_READ,
    `Basic ${TOKENS.BROKER_TOKEN_READ}`,
    'Bearer ',
  ]) {
    assert.equal((await ask(withAuth, 'GET', '/open', authorization)).status, 200)
    assertUnauthorized(await ask(withAuth, 'GET', '/read/x', authorization))
    assertUnauthorized(await ask(withAuth, 'POST', '/ingest', authorization))
    assertUnauthorized(await ask(withAuth, 'POST', '/supply', authorization))
    assertUnauthorized(await ask(withAuth, 'POST', '/admin', authorization))
  }
})

test('`bearer ` in lower case is accepted', async () => {
  assert.equal((await ask(withAuth, 'GET', '/read/x', `bearer ${TOKENS.BROKER_TOKEN_READ}`)).status, 200)
})

test('a path or method without a route is an empty 404, with or without a token', async () => {
  for (const authorization of [
    undefined,
    'Bearer unknown',
    bearer('BROKER_TOKEN_READ'),
    bearer('BROKER_TOKEN_INGEST'),
  ]) {
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/nothing'],
      ['GET', '/read'],
      ['GET', '/read/x/y'],
      ['GET', '/read/x/'],
      ['GET', '//read/x'],
      ['GET', '/READ/x'],
      ['DELETE', '/read/x'],
      ['POST', '/read/x'],
      ['GET', '/ingest'],
      ['PUT', '/ingest'],
    ] as const) {
      const answer = await ask(withAuth, method, path, authorization)
      assert.deepEqual(
        [answer.status, answer.text, answer.headers.get('content-length')],
        [404, '', '0'],
        `${method} ${path}`,
      )
    }
  }
})

test('an unknown token is 401 and a missing scope 403, before the body or query is validated', async () => {
  assertUnauthorized(await guarded.post('/pod/spec', '{broken', { token: 'unknown' }))
  assertForbidden(await guarded.post('/pod/spec', '{broken', { token: TOKENS.BROKER_TOKEN_READ }), 'ingest')
  assert.equal((await guarded.post('/pod/spec', '{broken', { token: TOKENS.BROKER_TOKEN_INGEST })).status, 400)
  assertUnauthorized(await guarded.get('/pod/info?include_dead=maybe'))
})

test('a percent-encoded path needs the scope of the decoded path; an encoded slash separates nothing', async () => {
  for (const path of ['/%69ngest', '/ing%65st', '/%69%6e%67%65%73%74']) {
    assertUnauthorized(await ask(withAuth, 'POST', path))
    assertForbidden(await ask(withAuth, 'POST', path, bearer('BROKER_TOKEN_READ')), 'ingest')
    assert.equal((await ask(withAuth, 'POST', path, bearer('BROKER_TOKEN_INGEST'))).status, 200, path)
  }
  const body = { pod_name: '', pod_ip: '', time_stamp: '2024-01-01T00:00:00', node_name: '', is_dead: false }
  for (const path of [
    '/pod/traffic/%62atch',
    '/pod/%73pec',
    '/%70od/mark_dead',
    '/svc/spe%63',
    '/pod/info/../spec',
    '/pod/./spec',
  ]) {
    assertUnauthorized(await guarded.post(path, body))
    assertForbidden(await guarded.post(path, body, { token: TOKENS.BROKER_TOKEN_READ }), 'ingest')
  }
  assert.equal((await guarded.post('/pod%2Fspec', body, { token: TOKENS.BROKER_TOKEN_INGEST })).status, 404)
})

test('HEAD needs the same scope as GET', async () => {
  assert.equal((await ask(withAuth, 'HEAD', '/read/x')).status, 401)
  assert.equal((await ask(withAuth, 'HEAD', '/read/x', bearer('BROKER_TOKEN_READ'))).status, 200)
  assert.equal((await ask(withAuth, 'HEAD', '/open')).status, 200)
})

test('without a configured token anyone may read, ingest and administer, but not write supply-chain data', async () => {
  for (const authorization of [undefined, 'Bearer whatever']) {
    assert.equal((await ask(withoutAuth, 'GET', '/read/x', authorization)).status, 200)
    assert.equal((await ask(withoutAuth, 'POST', '/ingest', authorization)).status, 200)
    assert.equal((await ask(withoutAuth, 'POST', '/admin', authorization)).status, 200)
    assertForbidden(await ask(withoutAuth, 'POST', '/supply', authorization), 'supplychain')
    assert.deepEqual((await ask(withoutAuth, 'GET', '/nothing', authorization)).text, '')
  }
})

test('a route without a declared scope makes the start fail with its name', () => {
  const undeclared = route().get('/forgotten/:id', (c) => c.text('x'))
  assert.throws(
    () => createApp(open.deps, [...mounts, undeclared]),
    /route has no declared scope: GET \/forgotten\/:id/,
  )
  const verb = route()
    .get('/both', access('read'), (c) => c.text('x'))
    .delete('/both', (c) => c.text('x'))
  assert.throws(() => createApp(open.deps, [verb]), /DELETE \/both/)
})

test('every route is listed with its scope; middleware for all paths is not a route', () => {
  assert.deepEqual(
    [...declaredRoutes(withAuth.routes)].filter(([name]) => !name.startsWith('OPTIONS')),
    [
      ['GET /open', 'open'],
      ['GET /read/:name', 'read'],
      ['POST /ingest', 'ingest'],
      ['POST /supply', 'supplychain'],
      ['POST /admin', 'admin'],
    ],
  )
})

test('the first handler of every route of the API checks its scope', () => {
  for (const { routes: handlers } of routes) {
    const first = new Map(handlers.toReversed().map((one) => [`${one.method} ${one.path}`, one]))
    assert.doesNotThrow(() => declaredRoutes([...first.values()]))
  }
})

test('GET routes and a trial need the scope read, all others ingest, except open and special ones', () => {
  for (const [name, scope] of declaredRoutes(routes.flatMap((one) => one.routes))) {
    const expected = ['GET /', 'GET /health', 'GET /metrics'].includes(name)
      ? 'open'
      : name.startsWith('GET ') || name === 'POST /networkpolicy/try'
        ? 'read'
        : ['PUT /vulnerabilities/:id/decision', 'POST /vex'].includes(name)
          ? 'supplychain'
          : 'ingest'
    if (!name.includes('/images/') && !name.includes('/export')) assert.equal(scope, expected, name)
  }
})
