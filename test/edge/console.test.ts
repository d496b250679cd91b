/** The console as the edge proxy serves it, beside the broker. */

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import test, { before } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { MAX_POLICIES_BYTES } from '../../lib/limits/limits.ts'
import { loadConfig } from '../../wrangler-free-deploy/edge/config.ts'
import { request } from '../support/broker.ts'
import { openFolder, page, SCRIPT, SECURITY } from '../support/console.ts'
import { refusalOf } from '../support/environment.ts'
import { ask, type Edge, exchange, spawnEdge, startEdge, startUpstream } from './support.ts'

const BUILD = fileURLToPath(new URL('../../dist/console', import.meta.url))
const ASSET = '/console/assets/index-AbC_12-x.js'
const DEEP = '/console/workload/shop/Deployment/api'
const PAGES = ['/', '/?namespace=shop', '/console/', DEEP, '/console/nodes/a.b.c?x=%2F', '/console/role/system%3Anode']
const TRY = '/networkpolicy/try'
const EXPORT = '/seccomp/profiles/shop/Deployment/web/export'
const POLICY = '{"apiVersion":"networking.k8s.io/v1"}'

let upstream: Awaited<ReturnType<typeof startUpstream>>
let edge: Edge
let plain: Edge
before(async () => {
  upstream = await startUpstream((incoming, outgoing) => void incoming.on('end', () => outgoing.end('heard')))
  edge = await startEdge(upstream.url, {}, { consoleFiles: openFolder('proxy') })
  plain = await startEdge(upstream.url)
})
/** The requests that the broker received since the last call, with the lengths of their bodies. */
const heard = () => upstream.heard.splice(0).map(({ method, target, body }) => [method, target, body.length])

/** One request on a connection of its own; the header fields by name. */
async function fetchRaw(line: string, ...fields: string[]) {
  const { status, head, body } = await ask(edge.port, line, ...fields)
  const headers = Object.fromEntries(
    head
      .split('\r\n')
      .slice(1)
      .map((field) => [field.slice(0, field.indexOf(':')).toLowerCase(), field.slice(field.indexOf(':') + 2)]),
  )
  return { status, headers, body }
}

test('the page answers / and every view, with the headers of security, and no request reaches the broker', async () => {
  for (const path of PAGES) {
    const { status, headers, body } = await fetchRaw(`GET ${path}`, 'X-Request-Id: request-of-test', 'Cookie: a=b')
    assert.deepEqual([status, body], [200, page('proxy')], path)
    const { date: _, etag, ...rest } = headers
    assert.match(etag!, /^"[\w-]{43}"$/)
    assert.deepEqual(rest, {
      ...SECURITY,
      'cache-control': 'no-cache',
      connection: 'close',
      'content-length': String(body.length),
      'content-type': 'text/html; charset=utf-8',
      vary: 'accept-encoding',
      'x-request-id': 'request-of-test',
    })
  }
  assert.deepEqual(heard(), [])
})

test('assets are kept by caches, compressed where accepted, and 304 where the client has them', async () => {
  const { status, headers, text } = await request(edge.url + ASSET)
  assert.deepEqual([status, text], [200, SCRIPT])
  assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
  const packed = await ask(edge.port, `GET ${ASSET}`, 'Accept-Encoding: gzip')
  assert.match(packed.head, /\r\ncontent-encoding: gzip\r\n/i)
  assert.equal(gunzipSync(Buffer.from(packed.body, 'latin1')).toString(), SCRIPT)
  const again = await request(edge.url + ASSET, { headers: { 'if-none-match': headers.etag } })
  assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', headers.etag])
})

test('HEAD is as GET; a missing file is an empty 404; the path without a slash is redirected', async () => {
  for (const path of ['/', '/console', DEEP, ASSET, '/console/assets/none.js']) {
    const [head, whole] = [await fetchRaw(`HEAD ${path}`), await fetchRaw(`GET ${path}`)]
    assert.deepEqual([head.status, head.body], [whole.status, ''], path)
    for (const one of [head, whole]) for (const name of ['x-request-id', 'date']) delete one.headers[name]
    assert.deepEqual(head.headers, whole.headers, path)
  }
  for (const path of ['/console/assets/none.js', '/console/favicon.ico'])
    assert.deepEqual(await fetchRaw(`GET ${path}`).then(({ status, body }) => [status, body]), [404, ''])
  const moved = await fetchRaw('GET /console?since=1h')
  assert.deepEqual([moved.status, moved.headers.location], [308, '/console/?since=1h'])
  assert.deepEqual(heard(), [])
})

test('targets that no browser sends are refused, below the console as well', async () => {
  for (const target of [
    '/console//',
    '/console/../pod/info',
    '/console/..',
    '/console/./x',
    '/console/%',
    '/console/%zz',
  ])
    assert.equal((await fetchRaw(`GET ${target}`)).status, 400, target)
  for (const target of ['//console/', '/console/a\\b', '/console/?a\\b', '/consol%65/', '/console#x'])
    assert.equal((await fetchRaw(`GET ${target}`)).status, 400, target)
  assert.deepEqual(heard(), [])
})

test('other methods are 405 and a body is 400', async () => {
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
    for (const path of ['/', '/console', DEEP, ASSET]) {
      const { status, headers } = await fetchRaw(`${method} ${path}`)
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD'], `${method} ${path}`)
    }
  const withBody = 'GET /console/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\n{'
  assert.equal((await exchange(edge.port, withBody)).status, 400)
})

test('all other paths are forwarded as without the console, and also the base path by itself', async () => {
  for (const [sent, forwarded] of [
    ['/pod/info', '/pod/info'],
    ['/api/pod/info?x', '/pod/info?x'],
    ['/api', '/'],
    ['/api/console/x', '/console/x'],
    ['/consoles', '/consoles'],
    ['/assets/x.js', '/assets/x.js'],
  ] as const) {
    assert.equal((await request(edge.url + sent)).text, 'heard')
    assert.deepEqual(heard(), [['GET', forwarded, 0]])
  }
  await request(edge.url + EXPORT, { method: 'POST', body: '{}' })
  assert.deepEqual(heard(), [['POST', EXPORT, 2]])
})

test('policies may be tried, with the longest body that the broker takes', async () => {
  for (const path of [TRY, `/api${TRY}?namespace=shop`])
    assert.equal((await request(edge.url + path, { method: 'POST', body: POLICY })).text, 'heard')
  const [one, other] = heard()
  assert.deepEqual(one, ['POST', TRY, POLICY.length])
  assert.deepEqual(other, ['POST', `${TRY}?namespace=shop`, POLICY.length])
  const longest = 'x'.repeat(MAX_POLICIES_BYTES)
  assert.equal((await request(edge.url + TRY, { method: 'POST', body: longest })).text, 'heard')
  assert.deepEqual(heard(), [['POST', TRY, MAX_POLICIES_BYTES]])
  assert.equal((await request(edge.url + TRY, { method: 'POST', body: `${longest}x` })).status, 413)
  assert.deepEqual(heard(), [])
  // The length is not known in advance: the broker gets at most the beginning, and its request is destroyed.
  const chunked = `${(longest.length + 1).toString(16)}\r\n${longest}x\r\n0\r\n\r\n`
  const head = `POST ${TRY} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`
  const late = await exchange(edge.port, head + chunked)
  assert.deepEqual([late.status, late.body], [413, `body is larger than ${MAX_POLICIES_BYTES} bytes`])
  heard()
  assert.deepEqual(await fetchRaw(`PUT ${TRY}`).then(({ status, headers }) => [status, headers.allow]), [
    405,
    'GET, HEAD, POST',
  ])
})

test('without the console nothing changes: / is the page of links, and no policy may be tried', async () => {
  for (const [path, forwarded] of [
    ['/', '/'],
    ['/console', '/console'],
    [DEEP, DEEP],
  ] as const) {
    assert.equal((await request(plain.url + path)).text, 'heard')
    assert.deepEqual(heard(), [['GET', forwarded, 0]])
  }
  assert.equal((await request(`${plain.url}/console/`)).status, 400)
  const { status, headers } = await request(plain.url + TRY, { method: 'POST', body: POLICY })
  assert.deepEqual([status, headers.allow, heard()], [405, 'GET, HEAD', []])
})

test('host names of other servers get 421, for pages and assets too', async () => {
  const strict = await startEdge(upstream.url, { ALLOWED_HOSTS: 'ui.example' }, { consoleFiles: openFolder('proxy') })
  for (const path of ['/', '/console', '/console/', DEEP, ASSET]) {
    for (const [host, status] of [
      ['evil.example', 421],
      ['ui.example:8080', path === '/console' ? 308 : 200],
    ] as const)
      assert.equal((await request(strict.url + path, { headers: { host } })).status, status, `${path} by ${host}`)
  }
})

test('its answers are counted and logged like all others, without their path', async () => {
  const own = await startEdge(upstream.url, {}, { consoleFiles: openFolder('proxy') })
  await request(own.url + DEEP)
  await own.isQuiet()
  assert.equal(await own.metric('edge_http_requests_total', { method: 'GET', status: '2xx' }), 1)
  const [line] = own.lines()
  assert.deepEqual([line!.status, line!.bytes, line!.upstream], [200, page('proxy').length, undefined])
  assert.ok(!JSON.stringify(line).includes('Deployment'))
})

test('while the proxy stops, answers end their connection', async () => {
  const own = await startEdge(upstream.url, {}, { consoleFiles: openFolder('proxy') })
  own.drain()
  for (const path of ['/', '/console', ASSET, '/console/assets/none.js'])
    assert.equal((await request(own.url + path)).headers.connection, 'close', path)
})

test('with BASE_PATH=/ the API is at the root, but for the page', async () => {
  const own = await startEdge(upstream.url, { BASE_PATH: '/' }, { consoleFiles: openFolder('proxy') })
  assert.equal((await request(`${own.url}/`)).text, page('proxy'))
  assert.equal((await request(`${own.url}/pod/info`)).text, 'heard')
  assert.deepEqual(heard(), [['GET', '/pod/info', 0]])
})

test('CONSOLE is off by default, and BASE_PATH may not be a path of it', () => {
  const load = (env: NodeJS.ProcessEnv) => loadConfig({ BROKER_URL: 'http://broker:9090', ...env })
  assert.deepEqual([load({}).consoleEnabled, load({ CONSOLE: 'true' }).consoleEnabled], [false, true])
  for (const path of ['/console', '/console/api'])
    assert.match(
      refusalOf(() => load({ CONSOLE: 'true', BASE_PATH: path })).join(),
      /^BASE_PATH: the console has \/console/,
    )
  assert.equal(load({ CONSOLE: 'true', BASE_PATH: '/consoles' }).basePath, '/consoles')
  assert.equal(load({ BASE_PATH: '/console' }).basePath, '/console')
})

test('the process serves the build of the checkout, or warns that there is none', async () => {
  const own = await spawnEdge({ BROKER_URL: upstream.url, CONSOLE: 'true' })
  const line = own.log.find(({ msg }) => msg === 'listening')!
  const warnings = own.log.filter(({ level }) => level === 'warn')
  const { text } = await request(`${own.url}/`)
  if (existsSync(join(BUILD, 'index.html'))) {
    assert.deepEqual([line.console, warnings], [`${own.url}/console/`, []])
    assert.match(text, /<meta name="console-token" content="proxy"/)
  } else assert.deepEqual([line.console, warnings.length, text], [undefined, 1, 'heard'])
  own.kill('SIGTERM')
  assert.deepEqual(await own.exited, { code: 0, signal: null })
})
