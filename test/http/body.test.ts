import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import test, { after } from 'node:test'
import { gzipSync } from 'node:zlib'
import { z } from 'zod'
import { createApp } from '../../lib/app/app.ts'
import { access } from '../../lib/http/access.ts'
import { IncomingBodies } from '../../lib/http/request/incoming-bodies.ts'
import { body, params, query } from '../../lib/http/request/validate.ts'
import { sendJson } from '../../lib/http/response/respond.ts'
import { route } from '../../lib/http/route.ts'
import { listen } from '../../lib/http/server/listen.ts'
import { startApp } from '../support/app.ts'
import { turnsOf } from '../support/turns.ts'
import { until } from '../support/until.ts'

const MAX_BYTES = 1_000
const app = await startApp()
const Item = z.object({ name: z.string(), list: z.array(z.object({ n: z.number() })).optional() })
const probe = createApp(app.deps, [
  route().post('/echo', access('open'), body(Item, MAX_BYTES), (c) => sendJson(c, JSON.stringify(c.req.valid('json')))),
  route().get(
    '/items/:id',
    access('open'),
    params(z.object({ id: z.string().max(5) })),
    query(z.object({ limit: z.coerce.number().default(7), b: z.string().optional() })),
    (c) => sendJson(c, JSON.stringify({ ...c.req.valid('param'), ...c.req.valid('query') })),
  ),
])
const { server } = await listen(probe.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})

interface Sent {
  status: number
  text: string
  headers: Record<string, unknown>
}
type Send = (bytes: Buffer | string, headers?: Record<string, string>) => Promise<Sent>

async function answered(answer: IncomingMessage): Promise<Sent> {
  return { status: answer.statusCode!, headers: answer.headers, text: Buffer.concat(await answer.toArray()).toString() }
}
/** One POST over a socket; with `chunked` it has no Content-Length. */
async function overSocket(bytes: Buffer | string, headers: Record<string, string>, chunked: boolean): Promise<Sent> {
  const length = chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(Buffer.byteLength(bytes)) }
  const options: RequestOptions = {
    port,
    path: '/echo',
    method: 'POST',
    headers: { 'content-type': 'application/json', ...length, ...headers },
  }
  const sent = request(options)
  sent.on('error', () => {})
  sent.end(bytes)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  return answered(answer)
}

const ways: Record<string, Send> = {
  'without a socket': async (bytes, headers = {}) => {
    const answer = await probe.request('/echo', {
      method: 'POST',
      body: bytes as string,
      headers: { 'content-type': 'application/json', ...headers },
    })
    return { status: answer.status, text: await answer.text(), headers: Object.fromEntries(answer.headers) }
  },
  'over a socket': (bytes, headers = {}) => overSocket(bytes, headers, false),
  'over a socket in chunks': (bytes, headers = {}) => overSocket(bytes, headers, true),
}
const small = '{"name":"é"}'
const sized = (bytes: number) => small + ' '.repeat(bytes - Buffer.byteLength(small))
const gzip = { 'content-encoding': 'gzip' }

for (const [way, send] of Object.entries(ways)) {
  test(`${way}: a body is read and validated`, async () => {
    const answer = await send(small)
    assert.deepEqual([answer.status, answer.text], [200, small])
  })

  test(`${way}: any JSON content type is accepted, others are 400`, async () => {
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'APPLICATION/JSON',
      'application/json ;x=y',
      'application/ld+json',
    ])
      assert.equal((await send(small, { 'content-type': type })).status, 200, type)
    for (const type of [
      'text/plain',
      'text/json',
      'application/jsonp',
      'application/x-www-form-urlencoded',
      'json',
      'application/json+x',
      '',
    ]) {
      const answer = await send(small, { 'content-type': type })
      assert.deepEqual([answer.status, answer.text], [400, 'Content type error: expected application/json'], type)
    }
  })

  test(`${way}: a body of the limit is accepted, one byte more is 413`, async () => {
    assert.equal((await send(sized(MAX_BYTES))).status, 200)
    for (const bytes of [MAX_BYTES + 1, 10 * MAX_BYTES]) {
      const answer = await send(sized(bytes))
      assert.deepEqual([answer.status, answer.text], [413, `body is larger than ${MAX_BYTES} bytes`])
    }
  })

  test(`${way}: the limit also applies to the decompressed bytes`, async () => {
    assert.equal((await send(gzipSync(sized(MAX_BYTES)), gzip)).status, 200)
    assert.equal((await send(gzipSync(sized(MAX_BYTES + 1)), gzip)).status, 413)
    assert.equal((await send(gzipSync(Buffer.alloc(50_000_000)), gzip)).status, 413)
  })

  test(`${way}: gzip is decompressed, identity is not, in any letter case; a gzip body without Content-Encoding is 400`, async () => {
    for (const coding of ['gzip', 'GZip', ' gzip '])
      assert.equal((await send(gzipSync(small), { 'content-encoding': coding })).text, small)
    for (const coding of ['identity', 'Identity'])
      assert.equal((await send(small, { 'content-encoding': coding })).text, small)
    assert.equal((await send(gzipSync(small))).status, 400)
  })

  test(`${way}: any other content coding is 415 and names the known ones`, async () => {
    for (const coding of ['br', 'deflate', 'zstd', 'gzip, gzip', 'x'.repeat(2_000)]) {
      const answer = await send(small, { 'content-encoding': coding })
      assert.equal(answer.status, 415)
      assert.ok(answer.text.startsWith(`content-encoding ${coding.slice(0, 40)} is not known`))
      assert.ok(answer.text.length < 120)
      assert.equal(answer.headers['accept-encoding'], 'gzip, identity')
    }
  })

  test(`${way}: an invalid, truncated or damaged gzip is 400`, async () => {
    const packed = gzipSync(sized(500))
    const damaged = Buffer.from(packed)
    damaged[damaged.length - 5]! ^= 0xff
    for (const bytes of [
      Buffer.from(small),
      packed.subarray(0, -1),
      packed.subarray(0, 12),
      damaged,
      Buffer.alloc(0),
    ]) {
      const answer = await send(bytes, gzip)
      assert.deepEqual([answer.status, answer.text], [400, 'the body is not valid gzip'])
    }
  })

  test(`${way}: bytes that are not UTF-8 are 400, compressed or not`, async () => {
    for (const bad of [[0xff], [0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      const bytes = Buffer.concat([Buffer.from('{"name":"'), Buffer.from(bad), Buffer.from('"}')])
      for (const answer of [await send(bytes), await send(gzipSync(bytes), gzip)])
        assert.deepEqual([answer.status, answer.text], [400, 'Json deserialize error: the body is not UTF-8'])
    }
  })

  test(`${way}: a body that the schema refuses is 400 and names the first wrong field by its path`, async () => {
    for (const [text, says] of Object.entries({
      '{}': /^Json deserialize error: name: /,
      '{"name":7}': /^Json deserialize error: name: .*expected string, received number/,
      '{"name":"x","list":[{"n":1},{"n":"2"}]}': /^Json deserialize error: list\[1\]\.n: /,
      '[]': /^Json deserialize error: .*expected object/,
      '': /^Json deserialize error: invalid JSON/,
    })) {
      const answer = await send(text)
      assert.equal(answer.status, 400)
      assert.match(answer.text, says)
    }
  })
}

test('a body whose Content-Length is too large is refused before it is sent', { timeout: 900_000 }, async () => {
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${MAX_BYTES + 1}\r\n\r\n`,
  )
  const [head] = (await once(socket, 'data')) as [Buffer]
  assert.match(head.toString(), /^HTTP\/1\.1 413 /)
  socket.destroy()
})

test('a body without an end is refused as soon as it is too large', { timeout: 900_000 }, async () => {
  const sent = request({ port, path: '/echo', method: 'POST', headers: { 'content-type': 'application/json' } })
  sent.on('error', () => {})
  sent.write(sized(MAX_BYTES))
  sent.write(' ')
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  assert.equal(answer.statusCode, 413)
  sent.destroy()
})

test('a truncated body is 400, even if its bytes are valid JSON', async () => {
  app.logged.length = 0
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `POST /echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n${small}`,
    () => socket.destroy(),
  )
  const line = await until('the request is logged', () => app.logged.find((one) => one.msg === 'request'))
  assert.deepEqual([line.route, line.status], ['/echo', 400])
})

// ---- Memory of bodies

const MIB = 1024 * 1024
/** An array that fills a body. */
const filled = (first: string, rest: string) =>
  `[${first}${`,${rest}`.repeat((2 * MIB - first.length - 2) / (rest.length + 1))}]`
const ELEMENTS = 'body has more than 10000 elements'
const DEPTH = 'Json deserialize error: nested deeper than 32768 levels'
const HOSTILE: [what: string, path: string, text: string, status: number, says: string][] = [
  ['a million zeros', '/pod/traffic/batch', filled('0', '0'), 413, ELEMENTS],
  ['flows without a time', '/pod/traffic/batch', filled('{"uuid":"z"}', '{"uuid":"z"}'), 413, ELEMENTS],
  ['arrays behind U+0000', '/pod/traffic/batch', filled('"\\u0000"', '[]'), 413, ELEMENTS],
  ['empty objects', '/pod/syscalls', filled('{}', '{}'), 413, ELEMENTS],
  ['opening brackets', '/pod/traffic/batch', '['.repeat(2 * MIB), 400, DEPTH],
  ['nested arrays', '/pod/spec', '['.repeat(MIB) + ']'.repeat(MIB), 400, DEPTH],
  [
    'values that the schema drops',
    '/pod/mark_dead',
    `{"x":${filled('1', '1').slice(6)}}`,
    413,
    'body has more than 400000 values',
  ],
]
for (const [what, path, text, status, says] of HOSTILE) {
  test(`2 MiB of ${what} are refused without being parsed, compressed or not`, async (t) => {
    const parsed = t.mock.method(JSON, 'parse')
    const headers = { 'content-type': 'application/json' }
    for (const answer of [
      await app.app.request(path, { method: 'POST', headers, body: text }),
      await app.app.request(path, {
        method: 'POST',
        headers: { ...headers, ...gzip },
        body: gzipSync(text) as unknown as string,
      }),
    ])
      assert.deepEqual([answer.status, await answer.text()], [status, says])
    assert.equal(parsed.mock.calls.filter(({ arguments: [sent] }) => sent.length > 1_000).length, 0)
    assert.equal(app.deps.incomingBodies.bytes, 0)
    for (const budget of [app.deps.bodies, app.deps.unpacked]) assert.equal(budget.availableKib, budget.totalKib)
  })
}

/** The app with a route whose handler waits until it is released. */
function holding(deps: Partial<typeof app.deps> = {}) {
  const held: (() => void)[] = []
  const one = createApp({ ...app.deps, ...deps }, [
    route().post('/hold', access('open'), body(z.object({ list: z.unknown() })), async (c) => {
      await new Promise<void>((resolve) => held.push(resolve))
      return sendJson(c, 'null')
    }),
  ])
  const send = (bytes: string | Buffer, headers = {}) =>
    one.request('/hold', {
      method: 'POST',
      body: bytes as string,
      headers: { 'content-type': 'application/json', ...headers },
    })
  return { one, held, send }
}

test('a body is charged for its bytes, arrays and objects until it is answered', async () => {
  const { bodies } = app.deps
  const { held, send } = holding()
  const charged = async (text: string) => {
    const answer = send(text)
    await until('the handler has it', () => held.length > 0)
    const kib = bodies.totalKib - bodies.availableKib
    held.pop()!()
    assert.equal((await answer).status, 200)
    assert.equal(bodies.availableKib, bodies.totalKib)
    return kib
  }
  const list = (of: string, bytes: number) =>
    `{"list":[${Array(Math.floor(bytes / (of.length + 1)))
      .fill(of)
      .join(',')}]}`
  const text = await charged(list(`"${'x'.repeat(1_000)}"`, 150_000))
  assert.ok(text >= (6 * 149_000) / 1024 && text < (7 * 150_000) / 1024, `${text} KiB`)
  for (const of of ['[]', '{}', '{"k":1}']) {
    const bytes = 70_000
    const containers = Math.floor(bytes / (of.length + 1))
    const kib = await charged(list(of, bytes))
    assert.ok(
      kib >= (600 * containers) / 1024 && kib <= (600 * (containers + 2) + 7 * bytes) / 1024,
      `${kib} KiB for ${of}`,
    )
  }
  // The objects of a small body are charged, too.
  assert.ok((await charged(list('{}', 9_000))) >= (600 * 3_000) / 1024)
})

test('the event loop turns between small bodies that are expensive to parse and arrive together', async () => {
  const one = createApp(app.deps, [
    route().post('/nested', access('open'), body(z.unknown()), (c) => sendJson(c, 'null')),
  ])
  const send = async (text: string) =>
    (await one.request('/nested', { method: 'POST', body: text, headers: { 'content-type': 'application/json' } }))
      .status
  const dear = '['.repeat(32_000) + ']'.repeat(32_000)
  const answered = Promise.all(Array.from({ length: 100 }, () => send(dear)))
  const turns = await turnsOf(answered)
  assert.deepEqual([...new Set(await answered)], [200])
  assert.ok(turns >= 5, `${turns} turns`)
})

test('compressed bodies wait for room in the budget before they are decompressed', async () => {
  const { unpacked } = app.deps
  const { held, send } = holding()
  const room = await unpacked.acquire(unpacked.totalKib)
  const answer = send(gzipSync('{"list":1}'), gzip)
  await until('it has come', () => app.deps.incomingBodies.bytes > 0)
  assert.equal(held.length, 0)
  room()
  await until('the handler has it', () => held.length > 0)
  // It has been parsed, and its bytes are no longer charged.
  assert.equal(unpacked.availableKib, unpacked.totalKib)
  assert.equal(app.deps.incomingBodies.bytes, 0)
  held[0]!()
  assert.equal((await answer).status, 200)
})

test('over the limit of incoming bytes the slow large body is refused with 503 and Retry-After, and others are served', {
  timeout: 900_000,
}, async () => {
  const incomingBodies = new IncomingBodies(500_000)
  const { one, held } = holding({ incomingBodies })
  const { server } = await listen(one.fetch, [{ host: '127.0.0.1', port: 0 }])
  after(() => server.closeAllConnections())
  after(() => server.close())
  const { port } = server.address() as AddressInfo
  const open = (announced: number | null) => {
    const length = announced === null ? {} : { 'content-length': announced }
    const sent = request({
      port,
      path: '/hold',
      method: 'POST',
      headers: { 'content-type': 'application/json', ...length },
    })
    sent.on('error', () => {})
    const answer = once(sent, 'response') as Promise<[IncomingMessage]>
    // The small request is destroyed below.
    answer.catch(() => {})
    return { sent, answer }
  }
  const text = `{"list":"${'x'.repeat(290_000)}"}`
  const came = (bytes: number) => until(`${bytes} bytes have come`, () => incomingBodies.bytes === bytes)
  const slow = open(text.length)
  slow.sent.write(text.slice(0, 250_000))
  await came(250_000)
  const small = open(60_000)
  small.sent.write(' '.repeat(50_000))
  await came(300_000)
  for (const announced of [text.length, null]) {
    const quick = open(announced)
    quick.sent.write(text.slice(0, 220_000))
    await until('it has come', () => incomingBodies.bytes === 270_000 || incomingBodies.bytes === 50_000 + 220_000)
    quick.sent.end(text.slice(220_000))
    await until('the handler has it', () => held.length > 0)
    held.pop()!()
    const [{ statusCode }] = await quick.answer
    assert.equal(statusCode, 200)
    await came(50_000)
  }
  const [refused] = await slow.answer
  assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [503, '1'])
  assert.match((await answered(refused)).text, /^too many bodies at once: more than 500000 bytes; retry in a moment/)
  assert.equal(incomingBodies.cuts, 1)
  small.sent.destroy()
  await came(0)
})

test('after all tests above no bytes of bodies are counted or charged', () => {
  assert.equal(app.deps.incomingBodies.bytes, 0)
  for (const budget of [app.deps.bodies, app.deps.unpacked]) assert.equal(budget.availableKib, budget.totalKib)
})

test('path and query are validated by name; defaults apply, and the first value of a repeated parameter counts', async () => {
  const get = async (path: string) => {
    const answer = await probe.request(path)
    return [answer.status, await answer.text()] as const
  }
  assert.deepEqual(await get('/items/a'), [200, '{"id":"a","limit":7}'])
  assert.deepEqual(await get('/items/%C3%A9?b=%20x+y&limit=3&limit=9'), [200, '{"id":"é","limit":3,"b":" x y"}'])
  const [status, text] = await get('/items/toolong?limit=9')
  assert.equal(status, 400)
  assert.match(text, /^Path deserialize error: id: /)
  const [, queryText] = await get('/items/a?limit=x')
  assert.match(queryText, /^Query deserialize error: limit: /)
})
