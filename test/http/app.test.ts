import assert from 'node:assert/strict'
import test from 'node:test'
import { createApp } from '../../lib/app/app.ts'
import { HttpError } from '../../lib/errors.ts'
import { access } from '../../lib/http/access.ts'
import { sendJson } from '../../lib/http/response/respond.ts'
import { route } from '../../lib/http/route.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { podPost } from '../support/records.ts'

const app = await startApp({ CORS_ORIGINS: '*' })
const guarded = await startApp({ ...TOKENS, CORS_ORIGINS: '*' })

const requestLines = (from = app) => from.logged.filter((line) => line.msg === 'request')
async function lineOf(method: string, path: string, options: Parameters<typeof app.request>[2] = {}, from = app) {
  from.logged.length = 0
  const answer = await from.request(method, path, options)
  const lines = requestLines(from)
  assert.equal(lines.length, 1)
  return { answer, line: lines[0]! }
}

test('a well-formed request id is kept', async () => {
  for (const id of ['12345678', 'a'.repeat(64), 'A-b_c-0123', '0af76519-16cd-43dd-8448-eb211c80319c']) {
    const { answer, line } = await lineOf('GET', '/pod/namespaces', { headers: { 'x-request-id': id } })
    assert.equal(answer.headers.get('x-request-id'), id)
    assert.equal(line.requestId, id)
  }
})

test('any other request id is replaced by a new one', async () => {
  const given = new Set<string>()
  for (const id of [
    undefined,
    '',
    '1234567',
    'a'.repeat(65),
    'abc def gh',
    'abcdefgh\tx',
    'abcdefgh"',
    'ключключ',
    '{"a":"bcdefgh"}',
    '../../etc/passwd',
  ]) {
    const headers = id === undefined ? {} : { 'x-request-id': Buffer.from(id).toString('latin1') }
    const { answer, line } = await lineOf('GET', '/pod/namespaces', { headers })
    const replaced = answer.headers.get('x-request-id')!
    assert.match(replaced, /^[0-9a-f-]{36}$/)
    assert.equal(line.requestId, replaced)
    given.add(replaced)
  }
  assert.equal(given.size, 10)
})

test('every request is one log line with the pattern of its route, never its path', async () => {
  const body = podPost({ pod_name: 'private-name', pod_ip: '10.66.0.1' })
  const cases: [method: string, path: string, body: unknown, route: string, status: number][] = [
    ['GET', '/pod/name/private-name?x=private', undefined, '/pod/name/:name', 404],
    ['POST', '/pod/spec', body, '/pod/spec', 200],
    ['GET', '/pod/name/private-name', undefined, '/pod/name/:name', 200],
    ['HEAD', '/pod/name/private-name', undefined, '/pod/name/:name', 200],
    ['GET', '/pod/ip/10.66.0.1?at=private', undefined, '/pod/ip/:ip', 400],
    ['POST', '/pod/spec', '{"private', '/pod/spec', 400],
    ['GET', '/private/path', undefined, 'unmatched', 404],
    ['DELETE', '/pod/name/private-name', undefined, 'unmatched', 404],
    ['OPTIONS', '/pod/name/private-name', undefined, 'unmatched', 204],
  ]
  for (const [method, path, sent, pattern, status] of cases) {
    const { answer, line } = await lineOf(method, path, sent === undefined ? {} : { body: sent })
    assert.equal(answer.status, status, path)
    assert.deepEqual([line.level, line.method, line.route, line.status], [30, method, pattern, status])
    assert.equal(typeof line.ms, 'number')
    assert.ok(!JSON.stringify(app.logged).includes('private-'), JSON.stringify(app.logged))
    assert.ok(!JSON.stringify(app.logged).includes('10.66'), JSON.stringify(app.logged))
  }
})

test('the log line has the size of the answer in bytes', async () => {
  const { answer, line } = await lineOf('GET', '/pod/name/nobody')
  assert.equal(line.bytes, Buffer.byteLength(answer.text))
})

test('no log line contains a token, known or not', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_INGEST, 'unknown-but-secret']) {
    for (const path of ['/pod/info', '/nothing', '/health']) {
      await lineOf('GET', path, { token }, guarded)
      assert.ok(!JSON.stringify(guarded.logged).includes(token))
    }
  }
})

test('a refused request is counted and logged by the pattern of its route', async () => {
  const { line } = await lineOf('GET', '/pod/list/some-node', {}, guarded)
  assert.deepEqual([line.route, line.status], ['/pod/list/:node', 401])
  const text = await guarded.deps.metrics.registry.metrics()
  assert.match(
    text,
    /broker_http_request_duration_seconds_count\{method="GET",route="\/pod\/list\/:node",status="401"\} 1/,
  )
})

test('labels of metrics never contain methods or paths chosen by clients', async () => {
  await app.request('BREW', '/pod/info')
  await app.request('GET', '/made/up/path')
  const text = await app.deps.metrics.registry.metrics()
  assert.match(text, /broker_http_request_duration_seconds_count\{method="other",route="unmatched",status="404"\}/)
  for (const chosen of ['BREW', 'made', 'private']) assert.ok(!text.includes(chosen), chosen)
})

test('a request without a route is an empty 404', async () => {
  for (const [method, path] of [
    ['GET', '/pods'],
    ['PUT', '/pod/spec'],
    ['GET', '/pod/spec'],
    ['POST', '/pod/info'],
    ['DELETE', '/svc/info'],
  ] as const) {
    for (const from of [app, guarded]) {
      const answer = await from.request(method, path)
      assert.deepEqual([answer.status, answer.text], [404, ''], `${method} ${path}`)
      assert.equal(answer.headers.get('content-length'), '0')
      assert.equal(answer.headers.get('access-control-allow-origin'), '*')
      assert.match(answer.headers.get('x-request-id')!, /^[0-9a-f-]{36}$/)
    }
  }
})

test('with CORS_ORIGINS=* a preflight is answered for any origin, method and header, without a token, for an hour', async () => {
  for (const path of ['/pod/spec', '/pod/info', '/pod/name/x', '/anything']) {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
      const headers = {
        origin: 'https://ui.example',
        'access-control-request-method': method,
        'access-control-request-headers': 'authorization, content-type, x-other',
      }
      const answer = await guarded.request('OPTIONS', path, { headers })
      assert.equal(answer.status, 204)
      assert.equal(answer.text, '')
      assert.equal(answer.headers.get('access-control-allow-origin'), '*')
      assert.equal(answer.headers.get('access-control-max-age'), '3600')
      assert.match(answer.headers.get('x-request-id')!, /^[0-9a-f-]{36}$/)
      assert.ok(answer.headers.get('access-control-allow-methods')!.split(/, ?/).includes(method))
      for (const name of ['authorization', 'content-type', 'x-other'])
        assert.ok(answer.headers.get('access-control-allow-headers')!.toLowerCase().includes(name))
    }
  }
})

test('a preflight has the request id of its log line, which is the sent one if that is valid', async () => {
  for (const id of ['id-12345678', 'no id']) {
    const { answer, line } = await lineOf('OPTIONS', '/pod/spec', { headers: { 'x-request-id': id } })
    assert.equal(answer.headers.get('x-request-id'), line.requestId)
    assert.equal(line.requestId === id, id === 'id-12345678')
  }
})

test('with CORS_ORIGINS=* any origin may read any answer, also an error', async () => {
  for (const [path, status] of [
    ['/health', 200],
    ['/pod/info', 401],
    ['/nothing', 404],
  ] as const) {
    const answer = await guarded.get(path, { headers: { origin: 'https://ui.example' } })
    assert.equal(answer.status, status)
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
  }
})

test('HEAD has the status and headers of GET and no body, on every kind of answer', async () => {
  await app.post('/pod/spec', podPost({ pod_name: 'head' }))
  for (const path of [
    '/pod/name/head',
    '/pod/name/nobody',
    '/pod/info',
    '/pod/info?include_dead=x',
    '/svc/info',
    '/health',
    '/nothing',
  ]) {
    const options = { headers: { 'x-request-id': 'id-12345678' } }
    const [head, whole] = [await app.request('HEAD', path, options), await app.request('GET', path, options)]
    assert.equal(head.status, whole.status)
    assert.equal(head.text, '')
    assert.deepEqual([...head.headers], [...whole.headers])
    assert.equal(head.headers.get('content-length'), String(Buffer.byteLength(whole.text)))
  }
})

test('a large list is compressed if the client accepts gzip', async () => {
  await Promise.all(Array.from({ length: 60 }, () => app.post('/pod/spec', podPost({ pod_identity: 'x'.repeat(200) }))))
  const plain = await app.get('/pod/info')
  const packed = await app.app.request('/pod/info', { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(packed.headers.get('content-encoding'), 'gzip')
  const unpacked = new Response(packed.body!.pipeThrough(new DecompressionStream('gzip')))
  assert.deepEqual(await unpacked.json(), plain.json)
})

test('a route gets the deps, and a failed request does not affect the next one', async () => {
  const probe = createApp(app.deps, [
    route().get('/deps', access('open'), (c) => {
      const given: object = c.get('deps')
      return sendJson(
        c,
        JSON.stringify(Object.entries(app.deps).every(([key, one]) => given[key as keyof typeof given] === one)),
      )
    }),
    route().get('/fails', access('open'), () => {
      throw new HttpError(418, 'short and stout')
    }),
  ])
  assert.equal((await probe.request('/fails')).status, 418)
  assert.equal(await (await probe.request('/deps')).text(), 'true')
})
