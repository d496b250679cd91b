import assert from 'node:assert/strict'
import test from 'node:test'
import { createGunzip, gunzipSync } from 'node:zlib'
import { createApp } from '../../lib/app/app.ts'
import { access } from '../../lib/http/access.ts'
import { acceptsGzip } from '../../lib/http/response/accepts-gzip.ts'
import { respond, sendJson, sendPieces } from '../../lib/http/response/respond.ts'
import { MAX_WHOLE_BYTES, once } from '../../lib/http/response/stream.ts'
import { route } from '../../lib/http/route.ts'
import { GZIP_MIN_BYTES } from '../../lib/limits/limits.ts'
import { startApp } from '../support/app.ts'
import { until } from '../support/until.ts'

for (const value of [
  ...[
    'gzip',
    'GZIP',
    ' gzip ',
    'gzip;q=1',
    'gzip;q=0.001',
    'gzip ; q=0.5',
    'deflate, gzip',
    'deflate;q=1.0, gzip;q=0.5',
    '*',
    '*;q=0.1',
  ],
  ...['gzip, deflate, br, zstd', 'br;q=0, gzip', 'gzip;foo=bar'],
]) {
  test(`gzip is accepted by ${JSON.stringify(value)}`, () => assert.equal(acceptsGzip(value), true))
}

for (const value of [
  ...[
    undefined,
    '',
    'identity',
    'deflate, br',
    'gzip;q=0',
    'gzip;q=0.0',
    'gzip;q=0.000',
    'gzip; q=0',
    'gzip;Q=0',
    '*;q=0',
    'gzipped',
    'x',
  ],
  ...['gzip;q=0, *', 'br, gzip;q=0'],
]) {
  test(`gzip is not accepted by ${JSON.stringify(value)}`, () => assert.equal(acceptsGzip(value), false))
}

// RFC 9110, 12.5.3: the asterisk matches the codings that are not named.
for (const [value, expected] of [
  ['*, gzip;q=0', false],
  ['*;q=0, gzip', true],
  ['identity;q=0.5, *;q=0, gzip;q=1.0', true],
] as const) {
  test(`a named coding takes precedence over the asterisk: ${value}`, () => assert.equal(acceptsGzip(value), expected))
}

const app = await startApp({ CORS_ORIGINS: '*' })
let draining = false
let sized = Buffer.alloc(0)
const CHUNK = '0123456789'
const bodies: Record<string, string | Buffer> = {
  text: '{"a":"é"}',
  bytes: Buffer.from('{"a":"é"}'),
  small: JSON.stringify('x'.repeat(GZIP_MIN_BYTES - 3)),
  large: JSON.stringify('x'.repeat(GZIP_MIN_BYTES - 2)),
  'large-wide': JSON.stringify('é'.repeat(GZIP_MIN_BYTES / 2 - 1)),
  'large-bytes': Buffer.from(JSON.stringify('x'.repeat(GZIP_MIN_BYTES))),
}
const probe = createApp({ ...app.deps, draining: () => draining }, [
  ...Object.entries(bodies).map(([name, body]) => route().get(`/${name}`, access('open'), (c) => sendJson(c, body))),
  route().get('/teapot', access('open'), (c) => respond(c, 418, 'été', { 'x-extra': '1' })),
  route().get('/sized', access('open'), (c) => sendJson(c, sized)),
  route().get('/endless', access('open'), (c) => sendPieces(c, { next: async () => Buffer.from(CHUNK), cancel() {} })),
  route().get('/broken', access('open'), (c) => {
    let asked = 0
    const next = async () => {
      if (asked++ > 0) throw new Error('on purpose')
      return Buffer.from(CHUNK)
    }
    return sendPieces(c, { next, cancel() {} })
  }),
  route().get('/stream', access('open'), (c) => sendPieces(c, once(Buffer.from('[1,2]')))),
])
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  probe.request(path, { method, headers })

test('JSON text or bytes are sent unchanged, with the length in bytes', async () => {
  for (const path of ['/text', '/bytes']) {
    const answer = await get(path, { 'accept-encoding': 'gzip' })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'application/json')
    assert.equal(answer.headers.get('content-length'), '10')
    assert.equal(answer.headers.get('content-encoding'), null)
    assert.equal(await answer.text(), '{"a":"é"}')
  }
})

test('an answer of at least 8 KiB is compressed if the client accepts gzip, and has `Vary: accept-encoding`', async () => {
  for (const path of ['/large', '/large-wide', '/large-bytes']) {
    const packed = await get(path, { 'accept-encoding': 'deflate, gzip' })
    assert.equal(packed.headers.get('content-encoding'), 'gzip')
    assert.equal(packed.headers.get('vary'), 'accept-encoding')
    const bytes = Buffer.from(await packed.arrayBuffer())
    assert.equal(packed.headers.get('content-length'), String(bytes.length))
    assert.equal(gunzipSync(bytes).toString(), String(bodies[path.slice(1)]))
    for (const headers of [{}, { 'accept-encoding': 'br' }, { 'accept-encoding': 'gzip;q=0' }]) {
      const plain = await get(path, headers as Record<string, string>)
      assert.equal(plain.headers.get('content-encoding'), null)
      assert.equal(plain.headers.get('vary'), 'accept-encoding')
      assert.equal(await plain.text(), String(bodies[path.slice(1)]))
    }
  }
})

test('an answer below 8 KiB is not compressed', async () => {
  const answer = await get('/small', { 'accept-encoding': 'gzip' })
  assert.equal(answer.headers.get('content-encoding'), null)
  assert.equal((await answer.text()).length, GZIP_MIN_BYTES - 1)
})

test('a text answer has its status, its length in bytes and its headers', async () => {
  const answer = await get('/teapot')
  assert.equal(answer.status, 418)
  assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8')
  assert.equal(answer.headers.get('content-length'), '5')
  assert.equal(answer.headers.get('x-extra'), '1')
  assert.equal(await answer.text(), 'été')
})

test('with CORS_ORIGINS=* every answer may be read by any origin and has the request id', async () => {
  for (const path of ['/text', '/large', '/teapot', '/stream', '/unknown']) {
    const answer = await get(path, { 'x-request-id': 'id-12345678' })
    assert.equal(answer.headers.get('access-control-allow-origin'), '*', path)
    assert.equal(answer.headers.get('x-request-id'), 'id-12345678', path)
  }
})

test('a streamed answer has no Content-Length', async () => {
  const answer = await get('/stream')
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.headers.get('content-length'), null)
  assert.equal(await answer.text(), '[1,2]')
})

test('a stream is compressed if the client accepts gzip, and each chunk can be decompressed on arrival', async () => {
  const answer = await get('/endless', { 'accept-encoding': 'gzip' })
  assert.equal(answer.headers.get('content-encoding'), 'gzip')
  assert.equal(answer.headers.get('vary'), 'accept-encoding')
  const gunzip = createGunzip()
  let text = ''
  gunzip.on('data', (bytes) => {
    text += bytes
  })
  const reader = answer.body!.getReader()
  for (let i = 0; i < 5; i++) {
    gunzip.write((await reader.read()).value!)
    await until('the chunk can be read', () => text === CHUNK.repeat(i + 1))
  }
  await reader.cancel()
  const whole = await get('/stream', { 'accept-encoding': 'gzip' })
  assert.equal(gunzipSync(Buffer.from(await whole.arrayBuffer())).toString(), '[1,2]')
  assert.equal((await get('/stream', { 'accept-encoding': 'gzip;q=0' })).headers.get('content-encoding'), null)
})

for (const bytes of [MAX_WHOLE_BYTES, MAX_WHOLE_BYTES + 1, 3 * MAX_WHOLE_BYTES, 3 * MAX_WHOLE_BYTES + 77]) {
  test(`an answer of ${bytes} bytes is whole and has its length, whether or not it is sent in slices`, async () => {
    sized = Buffer.from(Array.from({ length: bytes }, (_, i) => 32 + ((i * i) % 90)))
    const answer = await get('/sized')
    assert.equal(answer.headers.get('content-length'), String(bytes))
    const slices: Buffer[] = []
    for await (const slice of answer.body!) slices.push(Buffer.from(slice))
    assert.ok(Buffer.concat(slices).equals(sized))
    assert.equal(slices.length > 1, bytes > MAX_WHOLE_BYTES)
    const packed = await get('/sized', { 'accept-encoding': 'gzip' })
    assert.ok(gunzipSync(Buffer.from(await packed.arrayBuffer())).equals(sized))
    const head = await get('/sized', {}, 'HEAD')
    assert.deepEqual([head.headers.get('content-length'), (await head.arrayBuffer()).byteLength], [String(bytes), 0])
  })
}

test('an error in a compressed stream is an error for the reader', async () => {
  const answer = await get('/broken', { 'accept-encoding': 'gzip' })
  await assert.rejects(answer.arrayBuffer(), /on purpose/)
})

test('HEAD has the status and headers of GET and no body', async () => {
  for (const path of ['/text', '/large', '/teapot', '/unknown']) {
    for (const encoding of ['identity', 'gzip']) {
      const headers = { 'accept-encoding': encoding, 'x-request-id': 'id-12345678' }
      const [head, whole] = [await get(path, headers, 'HEAD'), await get(path, headers)]
      assert.equal(head.status, whole.status)
      assert.deepEqual([...head.headers], [...whole.headers], path)
      assert.equal((await head.arrayBuffer()).byteLength, 0)
    }
  }
})

test('while the process drains, every answer has `Connection: close`', async () => {
  assert.equal((await get('/text')).headers.get('connection'), null)
  draining = true
  for (const path of ['/text', '/large', '/teapot', '/stream'])
    assert.equal((await get(path)).headers.get('connection'), 'close', path)
  draining = false
})
