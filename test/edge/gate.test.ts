/** Accepted requests, and the rules by which others are refused: on sockets, byte by byte. */
import assert from 'node:assert/strict'
import test, { before } from 'node:test'
import { get, request } from '../support/broker.ts'
import { until } from '../support/until.ts'
import { ask, type Edge, exchange, startEdge, startUpstream, Wire } from './support.ts'

const EXPORT = '/seccomp/profiles/shop/Deployment/web/export'
const MAX_BODY_BYTES = 2 * 1024 * 1024

let edge: Edge
let upstream: Awaited<ReturnType<typeof startUpstream>>
before(async () => {
  upstream = await startUpstream()
  edge = await startEdge(upstream.url)
})

/** The requests that the broker received since the last call. */
const heard = () => upstream.heard.splice(0)

async function assertRefused(line: string, status: number, rule: RegExp, ...fields: string[]): Promise<void> {
  const answer = await ask(edge.port, line, ...fields)
  assert.equal(answer.status, status, `${line}: ${answer.body}`)
  if (!line.startsWith('HEAD ')) assert.match(answer.body, rule, line)
  assert.match(answer.head, /^content-type: text\/plain; charset=utf-8\r?$/im, line)
  assert.match(answer.head, /^x-request-id: [\w-]{36}\r?$/im, line)
  assert.deepEqual(heard(), [], line)
}

test('GET, HEAD and POST of an export are forwarded', async () => {
  for (const [method, sent, path] of [
    ['GET', '/api/pod/info?include_dead=false', '/pod/info?include_dead=false'],
    ['GET', '/pod/info', '/pod/info'],
    ['HEAD', '/api/pod/name/web-0', '/pod/name/web-0'],
    ['GET', EXPORT, EXPORT],
    ['POST', EXPORT, EXPORT],
    ['POST', `/api${EXPORT}?x=1`, `${EXPORT}?x=1`],
  ] as const) {
    const { status, text } = await request(edge.url + sent, { method })
    assert.deepEqual([status, text], [200, method === 'HEAD' ? '' : 'heard'])
    assert.deepEqual(
      heard().map(({ method, target }) => [method, target]),
      [[method, path]],
    )
  }
})

test('every other method is 405 with Allow, on every path', async () => {
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY', 'PROPFIND', 'M-SEARCH'])
    for (const path of ['/pod/spec', '/api/pod/traffic', '/healthz', EXPORT, `/api${EXPORT}`, `${EXPORT}/x`]) {
      if (method === 'POST' && path.endsWith(EXPORT)) continue
      const answer = await ask(edge.port, `${method} ${path}`)
      // Older releases of Node do not know QUERY and answer 400.
      if (method === 'QUERY' && answer.status === 400) continue
      assert.equal(answer.status, 405, `${method} ${path}`)
      const allowed = path.endsWith(EXPORT) ? 'GET, HEAD, POST' : 'GET, HEAD'
      assert.match(answer.head, new RegExp(`^allow: ${allowed}\\r?$`, 'im'), `${method} ${path}`)
      assert.match(answer.body, /^method \S+ is not forwarded here$/)
    }
  assert.deepEqual(heard(), [])
})

test('a preflight is 405, and the CORS headers of the broker are removed', async () => {
  const preflight = await ask(
    edge.port,
    'OPTIONS /api/pod/info',
    'Origin: http://elsewhere',
    'Access-Control-Request-Method: GET',
  )
  assert.equal(preflight.status, 405)
  const open = await startUpstream((_, outgoing) => {
    outgoing.setHeader('access-control-allow-origin', '*')
    outgoing.setHeader('Access-Control-Expose-Headers', 'x')
    outgoing.end()
  })
  const { headers } = await get(`${(await startEdge(open.url)).url}/pod/info`, {
    headers: { origin: 'http://elsewhere' },
  })
  assert.deepEqual(
    Object.keys(headers).filter((name) => name.startsWith('access-control-')),
    [],
  )
  assert.equal(/access-control/i.test(preflight.head), false)
})

test('CONNECT is 405', async () => {
  const answer = await exchange(edge.port, 'CONNECT broker:9090 HTTP/1.1\r\nHost: broker:9090\r\n\r\n')
  assert.deepEqual([answer.status, answer.body], [405, 'method CONNECT is not forwarded here'])
  assert.deepEqual(heard(), [])
})

test('a target that is not a plain path and query is 400 with the rule that it breaks', async () => {
  for (const [target, rule] of [
    ['//', /empty segments/],
    ['//pod/info', /empty segments/],
    ['/pod//info', /empty segments/],
    ['/pod/info/', /empty segments/],
    ['/api/', /empty segments/],
    ['/pod/%69nfo', /may not hold %/],
    ['/pod/../info', /may not hold \.\./],
    ['/pod/..', /may not hold \.\./],
    ['/pod/./info', /\. as a segment/],
    ['/pod\\info', /a segment/],
    ['/pod/info#x', /a segment/],
    ['/pod/info?x#y', /query/],
    ['/pod/info?x\\y', /query/],
    ['*', /begins with \//],
    ['http://broker/pod/info', /begins with \//],
    ['http://', /begins with \//],
    ['https://edge:1/healthz', /begins with \//],
  ] as const) {
    if (target === '*') await assertRefused(`OPTIONS ${target}`, 400, rule)
    else await assertRefused(`GET ${target}`, 400, rule)
  }
})

test('a request line that Node cannot parse is 400 and not forwarded', async () => {
  for (const line of [
    'GET /pod/inf\u00f6',
    'get /pod/info',
    'GETS /pod/info',
    'GET /pod info',
    'GET /pod\0info',
    'GET\t/pod/info',
  ])
    assert.equal((await ask(edge.port, line)).status, 400, line)
  assert.deepEqual(heard(), [])
})

test('the target is checked before the method', async () => {
  await assertRefused('DELETE /pod/../info', 400, /may not hold \.\./)
  await assertRefused('POST /pod/%73pec', 400, /may not hold %/)
  await assertRefused('HEAD /pod//info', 400, /empty/)
})

test('the method is checked before the body', async () => {
  await assertRefused('PUT /pod/info', 405, /method/, `Content-Length: ${MAX_BODY_BYTES + 1}`)
  await assertRefused('POST /pod/spec', 405, /method/, `Content-Length: ${MAX_BODY_BYTES + 1}`)
})

test('a GET or HEAD with a body is 400, a GET with an empty body is forwarded', async () => {
  await assertRefused('GET /pod/info', 400, /may not have a body/, 'Content-Length: 1', '', 'x')
  await assertRefused('HEAD /pod/info', 400, /may not have a body/, 'Content-Length: 5', '', 'xxxxx')
  await assertRefused('GET /pod/info', 400, /may not have a body/, 'Transfer-Encoding: chunked', '', '0')
  assert.equal((await ask(edge.port, 'GET /pod/info', 'Content-Length: 0')).status, 200)
  assert.deepEqual(
    heard().map(({ headers }) => headers['content-length']),
    [undefined],
  )
})

test('a body is 413 if its Content-Length is too large, before a byte is forwarded, or at the first byte beyond the limit', async () => {
  const announced = await ask(edge.port, `POST ${EXPORT}`, `Content-Length: ${MAX_BODY_BYTES + 1}`)
  assert.deepEqual([announced.status, announced.body], [413, `body is larger than ${MAX_BODY_BYTES} bytes`])
  assert.deepEqual(heard(), [])
  const largest = await request(edge.url + EXPORT, { method: 'POST', body: 'x'.repeat(MAX_BODY_BYTES) })
  assert.equal(largest.status, 200)
  heard()

  for (const [bytes, status] of [
    [MAX_BODY_BYTES, 200],
    [MAX_BODY_BYTES + 1, 413],
  ] as const) {
    // This broker answers after the end of the body.
    const patient = await startUpstream((incoming, outgoing) => void incoming.on('end', () => outgoing.end()))
    const { url, port } = await startEdge(patient.url)
    assert.ok(url)
    const wire = new Wire(port)
    wire.socket.write(`POST ${EXPORT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`)
    wire.socket.write(`${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n0\r\n\r\n`)
    await wire.sees(new RegExp(`^HTTP/1.1 ${status} `))
    const [one] = patient.heard
    if (status === 200) assert.equal(one!.body.length, bytes)
    else assert.ok(one!.body.length <= MAX_BODY_BYTES)
  }
})

test('a transfer coding in addition to chunked is 400', async () => {
  await assertRefused(`POST ${EXPORT}`, 400, /expected chunked/, 'Transfer-Encoding: gzip, chunked', '', '0')
})

test('/healthz is answered by the proxy, and similar paths are forwarded', async () => {
  for (const method of ['GET', 'HEAD']) {
    const { status, text, headers } = await request(`${edge.url}/healthz?x`, {
      method,
      headers: { 'x-request-id': 'probe-0001' },
    })
    assert.deepEqual([status, text, headers['x-request-id']], [200, method === 'HEAD' ? '' : 'ok', 'probe-0001'])
  }
  assert.deepEqual(heard(), [])
  assert.equal((await get(`${edge.url}/api/healthz`)).text, 'heard')
  assert.equal((await get(`${edge.url}/healthz/x`)).text, 'heard')
  assert.deepEqual(
    heard().map(({ target }) => target),
    ['/healthz', '/healthz/x'],
  )
})

test('an invalid, missing or repeated Host is 400 and not forwarded; a valid one is replaced by that of the broker', async () => {
  for (const host of ['a b', 'a/b', 'user@host', '[::1'])
    assert.equal(
      (await exchange(edge.port, `GET /pod/info HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status,
      400,
      host,
    )
  assert.equal((await exchange(edge.port, 'GET /pod/info HTTP/1.1\r\n\r\n')).status, 400)
  for (const second of ['Host: edge', 'host: elsewhere']) {
    const sent = `GET /pod/info HTTP/1.1\r\nHost: edge\r\n${second}\r\nConnection: close\r\n\r\n`
    const { status, body } = await exchange(edge.port, sent)
    assert.deepEqual([status, String(body)], [400, 'host: expected one field, not 2'])
  }
  assert.deepEqual(heard(), [])
  assert.equal(
    (await exchange(edge.port, 'GET /pod/info HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n')).status,
    200,
  )
  assert.equal((await exchange(edge.port, 'GET /pod/info HTTP/1.0\r\n\r\n')).status, 200)
  assert.deepEqual(
    heard().map(({ headers }) => headers.host),
    [new URL(upstream.url).host, new URL(upstream.url).host],
  )
})

test('after a refused request the connection serves the next one', async () => {
  const wire = new Wire(edge.port)
  const body = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
  wire.socket.write(`POST /pod/spec HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  wire.socket.write(
    'GET /pod/%20 HTTP/1.1\r\nHost: x\r\n\r\nGET /pod/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  )
  await until('the connection ends', () => wire.isClosed)
  assert.deepEqual(
    [...wire.received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
    ['405', '400', '200'],
  )
  assert.deepEqual(
    heard().map(({ target }) => target),
    ['/pod/info'],
  )
})

test('every request is logged and counted by method and class of status, without its path or query', async () => {
  const quiet = await startEdge(upstream.url)
  await get(`${quiet.url}/pod/info?token=hidden`)
  await request(`${quiet.url}/pod/spec?token=hidden`, { method: 'POST', body: '{}' })
  await ask(quiet.port, 'GET /%68idden')
  await ask(quiet.port, 'PROPFIND /pod/info')
  await quiet.isQuiet()
  assert.deepEqual(
    quiet.lines().map(({ method, status, bytes }) => [method, status, bytes]),
    [
      ['GET', 200, 5],
      ['POST', 405, 0],
      ['GET', 400, 0],
      ['other', 405, 0],
    ],
  )
  for (const line of quiet.lines())
    assert.deepEqual(Object.keys(line), ['level', 'time', 'requestId', 'method', 'status', 'ms', 'bytes', 'msg'])
  assert.ok(!JSON.stringify(quiet.lines()).includes('hidden'))
  assert.equal(await quiet.metric('edge_http_requests_total', { method: 'GET', status: '2xx' }), 1)
  assert.equal(await quiet.metric('edge_http_requests_total', { method: 'other', status: '4xx' }), 1)
  assert.equal(await quiet.metric('edge_http_requests_total', { method: 'POST', status: '4xx' }), 1)
  heard()
})

test('without ALLOWED_HOSTS only names of this machine are served, and another Host is 421', async () => {
  const bare = await startEdge(upstream.url, { ALLOWED_HOSTS: '' })
  for (const host of [
    'evil.example',
    `evil.example:${bare.port}`,
    'localhost.evil.example',
    '10.0.0.1',
    'telemetry-frontend',
  ]) {
    const answer = await exchange(bare.port, `GET /api/pod/info HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    assert.equal(answer.status, 421, host)
    assert.match(answer.body, /^host: .*ALLOWED_HOSTS/)
    assert.deepEqual(heard(), [])
  }
  for (const host of ['localhost', `localhost:${bare.port}`, `127.0.0.1:${bare.port}`, `[::1]:${bare.port}`]) {
    const answer = await exchange(bare.port, `GET /api/pod/info HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    assert.equal(answer.status, 200, host)
    assert.equal(heard().length, 1)
  }
  // Health checks of balancers use an address as Host, and the answer has no data.
  assert.equal((await get(`${bare.url}/healthz`, { headers: { host: '10.0.0.1' } })).status, 200)
})

test('names in ALLOWED_HOSTS are served, too, in any letter case and with any port', async () => {
  const named = await startEdge(upstream.url, { ALLOWED_HOSTS: 'UI.example, telemetry-frontend.shop.svc' })
  for (const [host, status] of [
    ['ui.example', 200],
    ['UI.EXAMPLE:443', 200],
    ['telemetry-frontend.shop.svc:8080', 200],
    ['localhost', 200],
    ['x.ui.example', 421],
    ['ui.example.evil', 421],
  ] as const)
    assert.equal((await get(`${named.url}/pod/info`, { headers: { host } })).status, status, host)
  heard()
})

test('the page of links is forwarded, also under the base path', async () => {
  for (const path of ['/', '/api']) {
    assert.equal((await get(edge.url + path)).status, 200, path)
    assert.deepEqual(
      heard().map(({ target }) => target),
      ['/'],
      path,
    )
  }
})
