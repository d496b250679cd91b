/** Misbehaving evaluators over real sockets. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { ImageTrust, MAX_ANSWER_BYTES } from '../../lib/image-trust/index.ts'
import { requestResults } from '../../lib/image-trust/request.ts'
import type { TrustFilter } from '../../lib/image-trust/result.ts'
import { until, withMoreTime } from '../support/until.ts'

const ALL: TrustFilter = { namespace: null, verdict: null, workloadKind: null, workloadName: null }
const TOKEN = 'token-of-the-broker'
/** Longer than any answer takes. */
const PATIENT_MS = 60_000

/** A server on loopback. `onRequest` gets each connection once its request has arrived. */
async function startRaw(onRequest: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.once('data', () => onRequest(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    for (const socket of sockets) socket.destroy()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  after(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets, close }
}

const head = (headers: Record<string, string | number> = {}) =>
  `HTTP/1.1 200 OK\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`

function client(url: string, timeoutMs = PATIENT_MS) {
  const logged: { fields: object; message: string }[] = []
  const note = (fields: object, message: string) => void logged.push({ fields, message })
  const trust = new ImageTrust({
    url,
    token: () => TOKEN,
    timeoutMs,
    log: { debug: note, info: note, warn: note, error: note },
  })
  return {
    logged,
    read: async (filter = ALL, left?: AbortSignal) => JSON.parse(String(await trust.read(filter, 200, left))),
  }
}

/** The reason that is given when these bytes are sent and the connection is then closed. */
async function reasonFor(...sent: (string | Buffer)[]): Promise<string> {
  const { url, close } = await startRaw((socket) => {
    for (const part of sent) socket.write(part)
    socket.end()
  })
  const { available, reason } = await client(url).read()
  await close()
  assert.equal(available, false)
  return reason
}

const UNREADABLE = 'the answer of the evaluator could not be read'
const FAILED = 'the request to the evaluator failed'
const INVALID = 'the answer of the evaluator is not valid'
const TOO_LARGE = 'the answer of the evaluator is larger than 16777216 bytes: filter by namespace'
const EMPTY = '{"evaluatedAt":null,"results":[]}'

test('without an answer or a valid HTTP answer, the request has failed', async () => {
  for (const sent of [
    '',
    'HTTP/1.1 2',
    'nonsense\r\n\r\n',
    `${head({ 'content-length': 'x' })}`,
    head({ x: 'y'.repeat(1_000_000) }),
  ])
    assert.equal(await reasonFor(sent), FAILED, sent.slice(0, 40))
  assert.equal(await reasonFor('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'), FAILED)
})

test('a truncated answer could not be read; without an announced length it is not valid', async () => {
  assert.equal(await reasonFor(head({ 'content-length': 100 }), EMPTY), UNREADABLE)
  assert.equal(await reasonFor(head({ 'transfer-encoding': 'chunked' }), '5\r\n{"res'), UNREADABLE)
  assert.equal(await reasonFor(head({ 'transfer-encoding': 'chunked' }), 'nonsense\r\n'), UNREADABLE)
  assert.equal(await reasonFor(head(), EMPTY.slice(0, -1)), INVALID)
})

test('a connection that is reset in the middle of the answer could not be read', async () => {
  const { url } = await startRaw((socket) =>
    socket.write(head({ 'content-length': 100 }) + EMPTY, () => socket.resetAndDestroy()),
  )
  assert.equal((await client(url).read()).reason, UNREADABLE)
})

test('an answer without a length, or in chunks of one byte, is read', async () => {
  for (const [headers, ...parts] of [
    [{}, EMPTY],
    [{ 'transfer-encoding': 'chunked' }, ...[...EMPTY].map((byte) => `1\r\n${byte}\r\n`), '0\r\n\r\n'],
  ] as const) {
    const { url } = await startRaw((socket) => socket.end(head(headers) + parts.join('')))
    assert.equal((await client(url).read()).available, true)
  }
})

test('the timeout covers everything up to the last byte, and the reason says what was missing', async () => {
  const silent = await startRaw(() => {})
  assert.equal((await client(silent.url, 50).read()).reason, 'the evaluator did not answer within 50 ms')
  const { url, sockets } = await startRaw((socket) => {
    socket.write(`${head({ 'transfer-encoding': 'chunked' })}b\r\n{"results":\r\n`)
    const drip = setInterval(() => socket.write('1\r\n \r\n'), 5)
    socket.on('close', () => clearInterval(drip))
  })
  await withMoreTime(200, async (ms) => {
    assert.equal((await client(url, ms).read()).reason, `the answer of the evaluator was not complete within ${ms} ms`)
  })
  await until('both connections are closed', () => sockets.size === 0 && silent.sockets.size === 0)
})

test('a closed port fails the request', async () => {
  const { url, close } = await startRaw(() => {})
  await close()
  const { read, logged } = client(url)
  assert.equal((await read()).reason, 'the evaluator could not be reached')
  assert.match(String((logged[0]!.fields as { err: Error }).err), /ECONNREFUSED/)
  assert.equal(JSON.stringify(logged).includes(TOKEN), false)
  // The wait for a connection includes the TLS handshake.
  const plain = await startRaw((socket) => socket.end('no TLS'))
  assert.equal((await client(plain.url.replace('http:', 'https:')).read()).reason, 'the evaluator could not be reached')
})

test('a token that no header can carry fails the request and is not logged', async () => {
  const { url } = await startRaw((socket) => socket.end(head()))
  const logged: unknown[] = []
  const note = (fields: object, message: string) =>
    void logged.push({ ...fields, message, text: String((fields as { err?: Error }).err) })
  const trust = new ImageTrust({
    url,
    token: () => 'tökén\u{1f600}',
    log: { debug: note, info: note, warn: note, error: note },
  })
  assert.equal(JSON.parse(String(await trust.read(ALL, 1))).reason, FAILED)
  assert.doesNotMatch(JSON.stringify(logged), /tök/)
})

test('16 MiB are read and not a byte more, with and without an announced length', async () => {
  const padded = (bytes: number) => Buffer.from(EMPTY.padEnd(bytes))
  // White space counts, since text outside the list is held in memory.
  const list = (bytes: number) => {
    const element = `${JSON.stringify({ policy: 'a/b', namespace: 'n', workload: 'D/w', container: 'c', digest: '', image: '', verdict: 'Trusted' })},`
    const opening = '{"results":['
    const count = Math.floor((bytes - opening.length - element.length - 2) / element.length)
    const body = opening + element.repeat(count) + element.slice(0, -1)
    return Buffer.from(`${body}${' '.repeat(bytes - body.length - 2)}]}`)
  }
  assert.equal(await reasonFor(head(), padded(MAX_ANSWER_BYTES)), INVALID)
  for (const headers of [(length: number) => ({ 'content-length': length }), () => ({})]) {
    const { url } = await startRaw((socket) =>
      socket.end(Buffer.concat([Buffer.from(head(headers(MAX_ANSWER_BYTES))), list(MAX_ANSWER_BYTES)])),
    )
    const { available, trusted, total } = await client(url).read()
    assert.deepEqual([available, trusted === total, total > 150_000], [true, true, true])
    assert.equal(await reasonFor(head(headers(MAX_ANSWER_BYTES + 1)), list(MAX_ANSWER_BYTES + 1)), TOO_LARGE)
    assert.equal(
      await reasonFor(head(headers(MAX_ANSWER_BYTES + 1)), 'x'.repeat(MAX_ANSWER_BYTES + 1)),
      TOO_LARGE,
      'which tells more',
    )
  }
})

test('an answer that announces more than 16 MiB is refused at once', async () => {
  const { url } = await startRaw((socket) => socket.write(head({ 'content-length': MAX_ANSWER_BYTES + 1 })))
  assert.equal((await client(url).read()).reason, TOO_LARGE)
})

test('a partial answer at the timeout is not shown as complete', async () => {
  await withMoreTime(200, async (ms) => {
    const { url, sockets } = await startRaw((socket) => {
      socket.write(`${head({ 'content-length': 2 })}{`)
    })
    const chunks = requestResults({
      url,
      token: null,
      namespace: null,
      verdict: null,
      timeoutMs: ms,
      maxBytes: MAX_ANSWER_BYTES,
    })
    await chunks.next()
    for (const socket of sockets) socket.write('}')
    await until('the question has ended', () => sockets.size === 0)
    const rest = async () => {
      for await (const _ of chunks);
    }
    await assert.rejects(rest, { message: `the answer of the evaluator was not complete within ${ms} ms` })
  })
})

test('gzip that was not requested is unpacked, up to the same limit', async () => {
  const packed = (body: Buffer | string, coding = 'gzip') =>
    [head({ 'content-encoding': coding }), gzipSync(body)] as const
  for (const coding of ['gzip', 'x-gzip', 'GZIP ']) {
    const { url } = await startRaw((socket) =>
      socket.end(Buffer.concat(packed(EMPTY, coding).map((part) => Buffer.from(part as string)))),
    )
    assert.equal((await client(url).read()).available, true, coding)
  }
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))
  assert.equal(await reasonFor(head({ 'content-encoding': 'gzip' }), bomb), TOO_LARGE)
  const [opening, whole] = packed(EMPTY)
  assert.equal(await reasonFor(opening, whole.subarray(0, -4)), UNREADABLE)
  assert.equal(await reasonFor(opening, 'no gzip'), UNREADABLE)
  for (const coding of ['deflate', 'br', 'gzip, gzip'])
    assert.equal(await reasonFor(head({ 'content-encoding': coding }), EMPTY), UNREADABLE, coding)
})

test('an endless series of empty gzip members is limited by its bytes', async () => {
  const nothing = gzipSync('')
  const members = Buffer.concat(
    Array.from({ length: Math.ceil((MAX_ANSWER_BYTES + 1) / nothing.length) }, () => nothing),
  )
  assert.equal(await reasonFor(head({ 'content-encoding': 'gzip' }), members), TOO_LARGE)
})

test('every request has its own connection, which ends with it', async () => {
  let connections = 0
  const { url, sockets } = await startRaw((socket) => {
    connections++
    socket.write(head({ 'content-length': EMPTY.length }) + EMPTY)
  })
  const { read } = client(url)
  for (let i = 0; i < 3; i++) assert.equal((await read()).available, true)
  assert.equal(connections, 3)
  await until('they are closed', () => sockets.size === 0)
})

test('the body of a refusal is not read to its end', async () => {
  const { url, sockets } = await startRaw((socket) => {
    socket.write('HTTP/1.1 500 Oops\r\ntransfer-encoding: chunked\r\n\r\n')
    const pour = () => {
      while (socket.write(`10000\r\n${'x'.repeat(65_536)}\r\n`));
      socket.once('drain', pour)
    }
    pour()
  })
  assert.equal((await client(url).read()).reason, 'the evaluator answered with status 500')
  await until('its connection is closed', () => sockets.size === 0)
})

test('a client that disconnects ends the request, before and during the answer', async () => {
  for (const sent of ['', `${head({ 'content-length': 1_000 })}{"results":[`]) {
    const left = new AbortController()
    const { url, sockets } = await startRaw((socket) => {
      if (sent === '') left.abort()
      else socket.write(sent, () => setImmediate(() => left.abort()))
    })
    await assert.rejects(client(url).read(ALL, left.signal), { status: 499 })
    await until('its connection is closed', () => sockets.size === 0)
  }
  const gone = AbortSignal.abort()
  const { url } = await startRaw(() => assert.fail('nobody is asked'))
  await assert.rejects(client(url).read(ALL, gone), { status: 499 })
})
