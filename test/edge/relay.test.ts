/** Forwarding of requests and answers: on real sockets, with brokers that misbehave. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import test from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { get, request } from '../support/broker.ts'
import { until, withMoreTime } from '../support/until.ts'
import { ask, exchange, startEdge, startRawUpstream, startUpstream, TOKEN, Wire } from './support.ts'

const EXPORT = '/seccomp/profiles/shop/Deployment/web/export'
const MB = 1024 * 1024
const LIST = '[{"pod_name":"web-0"}]'

test('the broker gets the token of the proxy, and no credentials of the client', async () => {
  const upstream = await startUpstream()
  const { port } = await startEdge(upstream.url)
  await ask(
    port,
    'GET /pod/info',
    'Authorization: Bearer evil',
    'AUTHORIZATION: Basic evil',
    'authorization:evil',
    'Proxy-Authorization: Bearer evil',
    'Cookie: session=evil',
    'Connection: close, authorization, x-private',
    'X-Private: evil',
  )
  await ask(
    port,
    'GET /pod/info',
    'Authorization: Bearer evil',
    'aUTHORIZATION: Basic evil',
    'Proxy-Authorization: evil',
    'cookie: evil',
  )
  assert.equal(upstream.heard.length, 2)
  for (const { rawHeaders } of upstream.heard) {
    assert.deepEqual(
      rawHeaders.filter((_, i) => rawHeaders[i - 1]?.toLowerCase() === 'authorization'),
      [`Bearer ${TOKEN}`],
    )
    assert.ok(!JSON.stringify(rawHeaders).includes('evil'))
  }
})

test('without a token the broker gets no Authorization, also not that of the client', async () => {
  const upstream = await startUpstream()
  const { port } = await startEdge(upstream.url, { BROKER_TOKEN_READ: '' })
  await ask(port, 'GET /pod/info', 'Authorization: Bearer evil')
  assert.equal(upstream.heard[0]!.headers.authorization, undefined)
})

test('hop-by-hop fields are removed in both directions; other fields pass unchanged, also repeated ones', async () => {
  const upstream = await startUpstream((_, outgoing) => {
    outgoing.writeHead(200, [
      ['Content-Type', 'application/json'],
      ['Content-Length', '2'],
      ['Connection', 'keep-alive, X-Hop'],
      ['Keep-Alive', 'timeout=1'],
      ['X-Hop', 'ends'],
      ['Proxy-Authenticate', 'ends'],
      ['Proxy-Connection', 'ends'],
      ['Upgrade', 'ends'],
      ['TE', 'ends'],
      ['X-Twice', 'one'],
      ['x-twice', 'two'],
      ['Retry-After', '7'],
    ] as never)
    outgoing.end('{}')
  })
  const { port } = await startEdge(upstream.url)
  const { head, body } = await exchange(
    port,
    [
      'GET /pod/info HTTP/1.1',
      'Host: edge',
      'Connection: close, x-hop, X-Other',
      'Keep-Alive: ends',
      'X-Hop: ends',
      'x-other: ends',
      'Proxy-Connection: ends',
      'Proxy-What: ends',
      'TE: trailers, ends',
      'Trailer: ends',
      'Upgrade: ends',
      'Expect: 100-continue',
      'Accept-Encoding: gzip',
      'If-None-Match: "x"',
      'X-Twice: one',
      'x-twice: two',
      'Via: 1.0 before',
      '',
      '',
    ].join('\r\n'),
  ).then(({ head, body }) => ({ head: `${head}${body}`.split('HTTP/1.1 200 OK')[1]!, body }))
  assert.ok(body.endsWith('{}'))
  const [heard] = upstream.heard
  assert.ok(!heard!.rawHeaders.some((text) => text.includes('ends')), heard!.rawHeaders.join())
  const { headers } = heard!
  assert.deepEqual(
    [
      headers['accept-encoding'],
      headers['if-none-match'],
      headers['x-twice'],
      headers.via,
      headers.expect,
      headers.connection,
    ],
    ['gzip', '"x"', 'one, two', '1.0 before, 1.1 edge', undefined, 'keep-alive'],
  )
  assert.ok(!head.includes('ends'), head)
  assert.match(head, /\r\nX-Twice: one\r\nx-twice: two\r\n/)
  assert.match(head, /\r\nRetry-After: 7\r\n/)
  assert.equal(head.match(/content-length/gi)?.length, 1)
  assert.match(head, /\r\nConnection: close\r\n/)
})

test('a valid request id is forwarded, returned and logged; another one is replaced', async () => {
  const upstream = await startUpstream((incoming, outgoing) => {
    outgoing.setHeader('x-request-id', incoming.headers['x-request-id']!)
    outgoing.end()
  })
  const edge = await startEdge(upstream.url)
  for (const sent of ['request-0001', 'bad id', 'x'.repeat(65), undefined]) {
    const { headers } = await get(`${edge.url}/pod/info`, {
      headers: sent === undefined ? {} : { 'x-request-id': sent },
    })
    const id = headers['x-request-id']
    if (sent === 'request-0001') assert.equal(id, sent)
    else assert.match(String(id), /^[\w-]{36}$/)
    assert.equal(upstream.heard.pop()!.headers['x-request-id'], id)
    await edge.isQuiet()
    assert.equal(edge.lines().pop()!.requestId, id)
  }
})

for (const [status, text] of [
  [400, 'bad'],
  [401, 'missing or invalid bearer token'],
  [403, "token lacks the 'read' scope"],
  [404, 'No data found'],
  [404, ''],
  [409, '{"error":"x"}'],
  [500, 'internal error'],
  [503, 'database busy: x'],
  [599, 'x'],
] as const) {
  test(`a ${status} of the broker is returned unchanged: ${text}`, async () => {
    const upstream = await startUpstream((_, outgoing) => {
      outgoing.writeHead(status, { 'retry-after': '5', 'content-type': 'text/plain', 'www-authenticate': 'Bearer' })
      outgoing.end(text)
    })
    const { url } = await startEdge(upstream.url)
    const answer = await get(`${url}/pod/info`)
    assert.deepEqual(
      [
        answer.status,
        answer.text,
        answer.headers['retry-after'],
        answer.headers['content-type'],
        answer.headers['www-authenticate'],
      ],
      [status, text, '5', 'text/plain', 'Bearer'],
    )
  })
}

test('answers with 204 or 304 or to HEAD have no body, and the connection can be used again', async () => {
  const upstream = await startUpstream((incoming, outgoing) => {
    const status = Number(incoming.url!.slice(1))
    outgoing.writeHead(status, status === 200 ? { 'content-length': String(LIST.length) } : {})
    outgoing.end(status === 200 && incoming.method === 'GET' ? LIST : undefined)
  })
  const { url } = await startEdge(upstream.url)
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  for (const [method, status, text] of [
    ['GET', 204, ''],
    ['GET', 304, ''],
    ['HEAD', 200, ''],
    ['HEAD', 204, ''],
    ['GET', 200, LIST],
  ] as const) {
    const answer = await request(`${url}/${status}`, { method, agent })
    assert.deepEqual([answer.status, answer.text], [status, text])
    if (status === 200) assert.equal(answer.headers['content-length'], String(LIST.length))
  }
  agent.destroy()
})

test('interim answers of the broker are not forwarded', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]')
  })
  const { url } = await startEdge(upstream.url)
  const { status, text, headers } = await get(`${url}/pod/info`)
  assert.deepEqual([status, text, headers.link], [200, '[]', undefined])
})

test('the trailers of an answer are removed', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.write(
      'HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\nX-Sum: 1\r\n\r\n',
    )
  })
  const { head, body } = await ask((await startEdge(upstream.url)).port, 'GET /pod/info')
  assert.ok(!/trailer|x-sum/i.test(head + body), head + body)
  assert.equal(body, '2\r\n[]\r\n0\r\n\r\n')
})

test('a compressed answer passes unchanged', async () => {
  const upstream = await startUpstream((_, outgoing) => {
    outgoing.setHeader('content-encoding', 'gzip')
    outgoing.end(gzipSync(LIST))
  })
  const { url } = await startEdge(upstream.url)
  const chunks: Buffer[] = []
  const [incoming] = (await once(http.get(`${url}/pod/info`), 'response')) as [http.IncomingMessage]
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  assert.equal(incoming.headers['content-encoding'], 'gzip')
  assert.equal(gunzipSync(Buffer.concat(chunks)).toString(), LIST)
})

test('followed flows arrive line by line, before the next is written, and heartbeats keep the stream open', async () => {
  const idleMs = 400
  let write = (_: string) => {}
  const upstream = await startUpstream((incoming, outgoing) => {
    assert.equal(incoming.headers.accept, 'application/x-ndjson')
    outgoing.writeHead(200, { 'content-type': 'application/x-ndjson', 'x-accel-buffering': 'no' })
    write = (line) => void outgoing.write(line)
    write('{"heartbeat":true}\n')
  })
  const { url } = await startEdge(upstream.url, { UPSTREAM_IDLE_TIMEOUT_MS: String(idleMs) })
  const follow = http.get(`${url}/flows?follow=true`, { headers: { accept: 'application/x-ndjson' } })
  const [incoming] = (await once(follow, 'response')) as [http.IncomingMessage]
  follow.on('error', () => {})
  assert.equal(incoming.headers['content-encoding'], undefined)
  let text = ''
  incoming.setEncoding('utf8').on('data', (piece) => {
    text += piece
  })
  let hasEnded = false
  incoming.on('close', () => {
    hasEnded = true
  })
  incoming.on('error', () => {})
  const startedAt = performance.now()
  for (let i = 0; performance.now() - startedAt < 2 * idleMs; i++) {
    const line = `{"n":${i}}\n`
    write(line)
    await until(`line ${i} has passed`, () => text.endsWith(line))
  }
  assert.equal(hasEnded, false)
  // Without a line the proxy considers the broker gone, and the client sees a broken stream.
  await until('the stream is cut', () => hasEnded)
  assert.equal(incoming.complete, false)
})

test('connections to the broker are reused, but not beyond their maximum age', async () => {
  const upstream = await startUpstream()
  const kept = await startEdge(upstream.url)
  for (let i = 0; i < 5; i++) await get(`${kept.url}/pod/info`)
  assert.equal(upstream.connections, 1)
  const renewing = await startEdge(upstream.url, {}, { maxKeptMs: 0 })
  for (let i = 0; i < 5; i++) await get(`${renewing.url}/pod/info`)
  assert.equal(upstream.connections, 6)
})

test('a posted body is forwarded byte for byte, with a length or in chunks, on a connection of its own', async () => {
  const upstream = await startUpstream((incoming, outgoing) => {
    incoming.on('end', () => outgoing.end('done'))
  })
  const { url, port } = await startEdge(upstream.url)
  await get(`${url}/pod/info`).catch(() => {})
  const body = JSON.stringify({ add: ['read', '\u00e9\u{1f600}'.repeat(50_000)] })
  const { status, text } = await request(url + EXPORT, { method: 'POST', body })
  assert.deepEqual([status, text], [200, 'done'])
  const one = upstream.heard.pop()!
  assert.equal(Buffer.from(one.body, 'latin1').equals(Buffer.from(body)), true)
  assert.deepEqual(
    [one.headers['content-length'], one.headers['content-type']],
    [String(Buffer.byteLength(body)), 'application/json'],
  )

  const wire = new Wire(port)
  wire.socket.write(
    `POST ${EXPORT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\n{"a\r\n2\r\n":\r\n2\r\n1}\r\n0\r\nX-Trailer: x\r\n\r\n`,
  )
  await wire.sees(/done$/)
  const chunked = upstream.heard.pop()!
  assert.deepEqual(
    [chunked.body, chunked.headers['transfer-encoding'], chunked.headers['content-length']],
    ['{"a":1}', 'chunked', undefined],
  )

  const none = await ask(port, `POST ${EXPORT}`)
  assert.equal(none.status, 200)
  assert.equal(upstream.heard.pop()!.headers['content-length'], '0')
  // One connection for the GET, and one for each POST.
  assert.equal(upstream.connections, 4)
})

test('an answer before the end of the body reaches the client, and the request to the broker ends', async () => {
  let hasEnded = false
  const upstream = await startUpstream((incoming, outgoing) => {
    incoming.socket.on('close', () => {
      hasEnded = true
    })
    outgoing.writeHead(403, { 'content-length': '2' }).end('no')
    incoming.resume()
  })
  const { port } = await startEdge(upstream.url)
  const wire = new Wire(port)
  const whole = 'x'.repeat(1_000_000)
  wire.socket.write(
    `POST ${EXPORT} HTTP/1.1\r\nHost: x\r\nContent-Length: ${whole.length}\r\n\r\n${whole.slice(0, 10)}`,
  )
  await wire.sees(/^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*no$/)
  await until('the question has ended', () => hasEnded)
  wire.socket.write(`${whole.slice(10)}GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n`)
  await wire.sees(/noHTTP\/1\.1 200 OK\r\n[\s\S]*ok$/)
})

test('a truncated body is never complete for the broker', async () => {
  let ended = 0
  let lost = 0
  const upstream = await startUpstream((incoming) => {
    incoming.on('end', () => ended++)
    incoming.on('close', () => {
      if (!incoming.complete) lost++
    })
  })
  const { port } = await startEdge(upstream.url)
  for (const head of ['Content-Length: 10\r\n\r\n12345', 'Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n']) {
    const wire = new Wire(port)
    const before = upstream.heard.length
    wire.socket.write(`POST ${EXPORT} HTTP/1.1\r\nHost: x\r\n${head}`)
    await until('the broker hears some', () => upstream.heard[before]?.body === '12345')
    wire.socket.destroy()
  }
  await until('the broker sees it', () => lost === 2)
  assert.equal(ended, 0)
})

test('answers are not buffered: a reader that pauses makes the broker pause', async () => {
  let written = 0
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const total = 64 * MB
  const upstream = await startUpstream((_, outgoing) => {
    outgoing.writeHead(200, { 'content-length': String(total) })
    const more = () => {
      while (written < total) {
        written += chunk.length
        if (!outgoing.write(chunk)) return void outgoing.once('drain', more)
      }
      outgoing.end()
    }
    more()
  })
  const edge = await startEdge(upstream.url)
  const [incoming] = (await once(http.get(`${edge.url}/pod/info`, { agent: false }), 'response')) as [
    http.IncomingMessage,
  ]
  incoming.pause()
  // The broker has paused if it writes nothing while other requests are answered.
  let last = -1
  await until('the broker is made to wait', async () => {
    for (let i = 0; i < 20; i++) await get(`${edge.url}/healthz`)
    const isStill = written === last
    last = written
    return isStill
  })
  assert.ok(written < total / 2, `${written} bytes were taken`)
  let received = 0
  for await (const bytes of incoming) received += (bytes as Buffer).length
  assert.equal(received, total)
  await edge.isQuiet()
  assert.equal(edge.lines().at(-1)!.bytes, total)
})

test('when a client disconnects, before or during the answer, the request to the broker ends', async () => {
  let gone = 0
  const upstream = await startUpstream((incoming, outgoing) => {
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) gone++
    })
    if (incoming.url === '/begun') outgoing.write('[')
  })
  const edge = await startEdge(upstream.url)
  const silent = new Wire(edge.port)
  silent.socket.write('GET /silent HTTP/1.1\r\nHost: x\r\n\r\n')
  const begun = new Wire(edge.port)
  begun.socket.write('GET /begun HTTP/1.1\r\nHost: x\r\n\r\n')
  await begun.sees(/\[/)
  await until('both are asked', () => upstream.heard.length === 2)
  silent.socket.destroy()
  begun.socket.destroy()
  await until('both questions have ended', () => gone === 2)
  await edge.isQuiet()
  assert.deepEqual(
    edge
      .lines()
      .map(({ status, isWhole }) => [status, isWhole])
      .sort(),
    [
      [200, false],
      [null, false],
    ].sort(),
  )
  assert.equal(await edge.metric('edge_http_requests_total', { status: 'none' }), 1)
  assert.equal(await edge.metric('edge_upstream_errors_total', { kind: 'cut' }), 0)
})

test('when a client disconnects, all its pipelined requests to the broker end', async () => {
  let gone = 0
  const upstream = await startUpstream((_, outgoing) => void outgoing.on('close', () => gone++))
  const edge = await startEdge(upstream.url)
  const wire = new Wire(edge.port)
  wire.socket.write(
    `GET /x HTTP/1.1\r\nHost: x\r\n\r\nPOST ${EXPORT} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx`.repeat(10),
  )
  await until('all are asked', () => upstream.heard.length === 20)
  wire.socket.destroy()
  await until('all questions have ended', () => gone === 20)
  await edge.isQuiet()
})

for (const [how, head] of [
  ['with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[{},'],
  ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n[{},\r\n'],
  ['in chunks that are none', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n[{},\r\nx'],
] as const) {
  for (const version of ['1.0', '1.1']) {
    for (const end of ['end', 'reset'] as const) {
      test(`an answer ${how} that the broker cuts is a connection reset for an HTTP/${version} client (${end})`, async () => {
        const upstream = await startRawUpstream((socket) => {
          socket.write(head)
          if (how !== 'in chunks that are none')
            socket.once('data', () => (end === 'end' ? socket.end() : socket.resetAndDestroy()))
        })
        const edge = await startEdge(upstream.url)
        const wire = new Wire(edge.port)
        wire.socket.write(`GET /pod/info HTTP/${version}\r\nHost: x\r\n\r\n`)
        if (how !== 'in chunks that are none') {
          await wire.sees(/\[\{\},/)
          for (const socket of upstream.open) socket.emit('data', '')
        }
        await until('the connection ends', () => wire.isClosed)
        assert.equal(wire.hasEnded, false, 'it ended as if the list were whole')
        assert.equal(wire.error, 'ECONNRESET')
        await edge.isQuiet()
        const [line] = edge.lines()
        assert.deepEqual([line!.status, line!.isWhole, line!.upstream], [200, false, 'cut'])
        assert.equal(await edge.metric('edge_upstream_errors_total', { kind: 'cut' }), 1)
      })
    }
  }
}

test('an unreachable broker is 502 without its address', async () => {
  const upstream = await startUpstream()
  const { port } = upstream
  const edge = await startEdge(upstream.url)
  await upstream.close()
  for (const method of ['GET', 'HEAD', 'POST']) {
    const { status, text, headers } = await request(edge.url + EXPORT, { method })
    assert.deepEqual([status, text], [502, method === 'HEAD' ? '' : 'the broker cannot be reached'])
    assert.ok(!JSON.stringify(headers).includes(String(port)))
    assert.ok(headers['x-request-id'])
  }
  await edge.isQuiet()
  assert.deepEqual([edge.lines()[0]!.upstream, edge.lines()[0]!.code], ['unreachable', 'ECONNREFUSED'])
  assert.equal(await edge.metric('edge_upstream_errors_total', { kind: 'unreachable' }), 3)
  assert.equal((await get(`${edge.url}/healthz`)).status, 200)
})

for (const [what, bytes] of [
  ['bytes that are not HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['a status below 100', 'HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n'],
  ['a status above 599', 'HTTP/1.1 600 High\r\nContent-Length: 0\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n[]'],
  ['a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['a list without a length or chunks', 'HTTP/1.1 200 OK\r\n\r\n[{}]'],
  ['a head that is too large', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'],
] as const) {
  test(`a broker that answers ${what} is 502`, async () => {
    const upstream = await startRawUpstream((socket) => void socket.end(bytes))
    const edge = await startEdge(upstream.url)
    const { status, text } = await get(`${edge.url}/pod/info`)
    assert.deepEqual([status, text], [502, 'the broker gave no valid answer'])
    assert.equal(await edge.metric('edge_upstream_errors_total', { kind: 'nonsense' }), 1)
    assert.equal(upstream.questions, 1)
  })
}

test('an error answer of the broker without length or body is returned', async () => {
  const upstream = await startRawUpstream((socket) => {
    socket.end('HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n')
  })
  const { url } = await startEdge(upstream.url)
  assert.equal((await get(`${url}/pod/info`)).status, 431)
})

test('no first byte in time is 504, and the request to the broker ends', async () => {
  const upstream = await startRawUpstream(() => {})
  const edge = await startEdge(upstream.url, { UPSTREAM_FIRST_BYTE_TIMEOUT_MS: '50' })
  const { status, text } = await get(`${edge.url}/pod/info`)
  assert.deepEqual([status, text], [504, 'the broker did not answer in time'])
  await until('the question has ended', () => upstream.open.size === 0)
  // Zero, if the time was over before the request was sent.
  assert.ok(upstream.questions <= 1, 'it was asked again')
  assert.equal(await edge.metric('edge_upstream_errors_total', { kind: 'timeout' }), 1)
})

test('the time limit of the first byte ends with the head, and does not include the body', async () => {
  await withMoreTime(500, async (ms) => {
    const part = () => new Promise((resolve) => setTimeout(resolve, ms * 0.6))
    const upstream = await startUpstream(async (_, outgoing) => {
      await part()
      outgoing.writeHead(200, { 'content-length': '2' }).flushHeaders()
      await part()
      outgoing.end('[]')
    })
    const { url } = await startEdge(upstream.url, { UPSTREAM_FIRST_BYTE_TIMEOUT_MS: String(ms) })
    assert.equal((await get(`${url}/pod/info`)).text, '[]')
  })
})

test('no first byte in time on a reused connection is 504, and the request is not repeated', async () => {
  await withMoreTime(200, async (ms) => {
    const upstream = await startRawUpstream((socket, _, number) => {
      if (number === 0) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]')
    })
    const { url } = await startEdge(upstream.url, { UPSTREAM_FIRST_BYTE_TIMEOUT_MS: String(ms) })
    assert.equal((await get(`${url}/pod/info`)).status, 200)
    assert.equal((await get(`${url}/pod/info`)).status, 504)
    assert.deepEqual([upstream.questions, upstream.open.size <= 1], [2, true])
  })
})

test('no TCP connection in time is 504', async (t) => {
  // 192.0.2.0/24 is reserved for documentation, so nothing answers there.
  const edge = await startEdge('http://192.0.2.1:9090', { UPSTREAM_CONNECT_TIMEOUT_MS: '50' })
  const { status } = await get(`${edge.url}/pod/info`)
  if (status === 502) return t.skip('this machine has no route there')
  assert.equal(status, 504)
})

test('no TLS handshake in time is 504, and the connection to the broker ends', { timeout: 60_000 }, async () => {
  const upstream = await startRawUpstream(() => {})
  const edge = await startEdge(upstream.url.replace('http:', 'https:'), {
    UPSTREAM_CONNECT_TIMEOUT_MS: '50',
    UPSTREAM_FIRST_BYTE_TIMEOUT_MS: '110000',
  })
  const { status, text } = await get(`${edge.url}/pod/info`)
  assert.deepEqual([status, text], [504, 'the broker did not answer in time'])
  await until('the connection has ended', () => upstream.open.size === 0)
  assert.equal(await edge.metric('edge_upstream_errors_total', { kind: 'timeout' }), 1)
})

test('an answer that stalls is cut', async () => {
  const upstream = await startRawUpstream(
    (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n[{}'),
  )
  await withMoreTime(100, async (ms) => {
    const edge = await startEdge(upstream.url, { UPSTREAM_IDLE_TIMEOUT_MS: String(ms) })
    const wire = new Wire(edge.port)
    wire.socket.write('GET /pod/info HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('the connection ends', () => wire.isClosed)
    assert.match(wire.received, /\[\{\}$/)
    assert.equal(wire.error, 'ECONNRESET')
    await edge.isQuiet()
    assert.equal(edge.lines()[0]!.upstream, 'timeout')
  })
})

test('an answer in many pieces may take longer in total than the idle limit', async () => {
  await withMoreTime(500, async (ms) => {
    const upstream = await startUpstream(async (_, outgoing) => {
      outgoing.writeHead(200, { 'content-length': '12' })
      const startedAt = performance.now()
      for (let i = 1; i <= 12; i++) {
        outgoing.write('x')
        while (performance.now() - startedAt < (i * ms) / 8) await new Promise((resolve) => setTimeout(resolve, 5))
      }
    })
    const { url } = await startEdge(upstream.url, { UPSTREAM_IDLE_TIMEOUT_MS: String(ms) })
    assert.equal((await get(`${url}/pod/info`)).text, 'x'.repeat(12))
  })
})

test('the idle limit does not count the time in which the reader pauses', async () => {
  await withMoreTime(1_000, async (ms) => {
    const upstream = await startUpstream((_, outgoing) => void outgoing.end(Buffer.alloc(32 * MB)))
    const edge = await startEdge(upstream.url, { UPSTREAM_IDLE_TIMEOUT_MS: String(ms) })
    const [incoming] = (await once(http.get(`${edge.url}/pod/info`, { agent: false }), 'response')) as [
      http.IncomingMessage,
    ]
    incoming.pause()
    // Another answer that stalls is cut in the meantime.
    const still = await startRawUpstream(
      (socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n['),
    )
    const other = await startEdge(still.url, { UPSTREAM_IDLE_TIMEOUT_MS: String(2.5 * ms) })
    await assert.rejects(get(`${other.url}/pod/info`))
    let received = 0
    try {
      for await (const bytes of incoming) received += (bytes as Buffer).length
    } catch (error) {
      await edge.isQuiet()
      assert.fail(`${error}: ${JSON.stringify(edge.lines())}`)
    }
    assert.equal(received, 32 * MB)
  })
})

for (const method of ['GET', 'HEAD', 'POST']) {
  test(`a reused connection reset by the broker: a ${method} ${method === 'POST' ? 'never uses one' : 'is sent again and succeeds'}`, async () => {
    const asked: string[] = []
    // Each connection answers once and is reset by the next request.
    const upstream = await startRawUpstream((socket, head) => {
      asked.push(head.split(' ')[0]!)
      if (socket.bytesWritten > 0) socket.resetAndDestroy()
      else socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n${head.startsWith('HEAD') ? '' : '[]'}`)
    })
    const edge = await startEdge(upstream.url)
    assert.equal((await get(`${edge.url}/pod/info`)).status, 200)
    const { status } = await request(edge.url + EXPORT, { method })
    assert.equal(status, 200)
    assert.deepEqual(asked, method === 'POST' ? ['GET', 'POST'] : ['GET', method, method])
    assert.equal(await edge.metric('edge_upstream_retries_total'), method === 'POST' ? 0 : 1)
  })
}

test('the repeated request uses a new connection, even if others could be reused', async () => {
  let go = () => {}
  const all = new Promise<void>((resolve) => {
    go = resolve
  })
  const upstream = await startRawUpstream(async (socket, _, number) => {
    if (socket.bytesWritten > 0) return void socket.resetAndDestroy()
    if (number === 3) go()
    await all
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]')
  })
  const edge = await startEdge(upstream.url)
  await Promise.all(Array.from({ length: 4 }, () => get(`${edge.url}/pod/info`)))
  assert.equal(upstream.open.size, 4)
  assert.equal((await get(`${edge.url}/pod/info`)).status, 200)
  assert.equal(upstream.questions, 6)
})

test('a GET is sent at most twice, and not again after the first byte of an answer', async () => {
  const twice = await startRawUpstream((socket) => void socket.resetAndDestroy())
  const first = await startEdge(twice.url)
  assert.equal((await get(`${first.url}/pod/info`)).status, 502)
  assert.equal(twice.questions, 2)
  const begun = await startRawUpstream((socket) => {
    socket.write('HTTP/1.1 2', () => socket.resetAndDestroy())
  })
  const second = await startEdge(begun.url)
  assert.equal((await get(`${second.url}/pod/info`)).status, 502)
  assert.equal(begun.questions, 1)
})

test('a POST whose connection is reset is not sent again', async () => {
  const upstream = await startRawUpstream((socket) => void socket.resetAndDestroy())
  const { url } = await startEdge(upstream.url)
  assert.equal((await request(url + EXPORT, { method: 'POST', body: '{}' })).status, 502)
  assert.equal(upstream.questions, 1)
})

test('while the proxy drains, every answer has `Connection: close`', async () => {
  const upstream = await startUpstream()
  const edge = await startEdge(upstream.url)
  edge.drain()
  const agent = () => new http.Agent({ keepAlive: true })
  const answers = await Promise.all([
    get(`${edge.url}/healthz`, { agent: agent() }),
    get(`${edge.url}/pod/info`, { agent: agent() }),
    get(`${edge.url}/pod//info`, { agent: agent() }),
    request(`${edge.url}/pod/info`, { method: 'PUT', agent: agent() }),
    request(`${edge.url}/pod/info`, { method: 'HEAD', agent: agent() }),
  ])
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers.connection]),
    [200, 200, 400, 405, 200].map((status) => [status, 'close']),
  )
})

test('requests beyond 1024 in flight are 503 at once, and the others are answered', async () => {
  const answers: http.ServerResponse[] = []
  const upstream = await startUpstream((_, outgoing) => void answers.push(outgoing))
  const edge = await startEdge(upstream.url)
  const wires = Array.from({ length: 16 }, () => new Wire(edge.port))
  for (const wire of wires) wire.socket.write('GET /pod/info HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(64))
  await until('all are under way', async () => (await edge.metric('edge_http_requests_in_flight')) === 1_024)
  const spared = await get(`${edge.url}/pod/info`)
  assert.deepEqual([spared.status, spared.headers['retry-after']], [503, '1'])
  assert.equal((await get(`${edge.url}/healthz`)).status, 200)
  await until('all are answered', () => {
    for (const answer of answers.splice(0)) answer.end('[]')
    return wires.every(({ received }) => received.match(/HTTP\/1\.1 200 OK/g)?.length === 64)
  })
  const after = get(`${edge.url}/pod/info`)
  await until('the next one is asked', () => answers.pop()?.end('[]'))
  assert.equal((await after).status, 200)
  assert.equal(await edge.metric('edge_upstream_errors_total', { kind: 'full' }), 1)
})

test('a slow reader is cut, and its request to the broker ends', async () => {
  let gone = false
  const upstream = await startUpstream((_, outgoing) => {
    outgoing.on('close', () => {
      gone = true
    })
    outgoing.end(Buffer.alloc(64 * MB))
  })
  const edge = await startEdge(
    upstream.url,
    {},
    { readers: { leastBytesPerSecond: 32 * 1024, graceMs: 400, sweepMs: 20 } },
  )
  const wire = new Wire(edge.port)
  wire.socket.pause()
  wire.socket.write('GET /pod/info HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('the question has ended', () => gone)
  await edge.isQuiet()
  assert.equal(edge.lines()[0]!.isWhole, false)
})
