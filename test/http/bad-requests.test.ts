/** Requests that are refused before routing: the answer has a text and `Connection: close`. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import test, { after } from 'node:test'
import { listen } from '../../lib/http/server/listen.ts'
import { startApp } from '../support/app.ts'
import { document } from '../support/contract.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const { server } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => server.close())

/** Sends the text unchanged and reads until the server ends the connection. */
async function exchange(...texts: string[]) {
  const socket = net.connect({ host: '127.0.0.1', port })
  let received = ''
  socket.setEncoding('latin1').on('data', (piece) => {
    received += piece
  })
  for (const text of texts) socket.write(text)
  await once(socket, 'close')
  const [head, body] = received.split('\r\n\r\n') as [string, string]
  const [line, ...fields] = head.split('\r\n')
  const headers = Object.fromEntries(
    fields.map((one) => [one.slice(0, one.indexOf(':')).toLowerCase(), one.slice(one.indexOf(':') + 2)]),
  )
  return { status: Number(line!.split(' ')[1]), headers, body, received }
}

async function assertRefused(sent: string[], status: number, text: RegExp): Promise<void> {
  const answer = await exchange(...sent)
  assert.equal(answer.status, status, answer.received)
  assert.match(answer.body, text)
  assert.equal(answer.headers['content-type'], 'text/plain; charset=utf-8')
  assert.equal(answer.headers['content-length'], String(Buffer.byteLength(answer.body)))
  assert.equal(answer.headers.connection, 'close')
  assert.ok(answer.headers['x-request-id'])
}

test('a request head that is too large is 431 with a text that names the limit', async () => {
  const rule = new RegExp(`^the head of the request is larger than ${http.maxHeaderSize} bytes$`)
  for (const bytes of [17_000, 1_000_000])
    await assertRefused([`GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(bytes)}\r\n\r\n`], 431, rule)
  await assertRefused([`GET /health?${'a'.repeat(17_000)} HTTP/1.1\r\nHost: x\r\n\r\n`], 431, rule)
})

test('a head that becomes too large after its first packet is 431 without a text, which its status line has', async () => {
  for (const method of ['GET', 'HEAD']) {
    const arrived = once(server, 'connection')
    const socket = net.connect({ host: '127.0.0.1', port })
    let received = ''
    socket.setEncoding('latin1').on('data', (piece) => {
      received += piece
    })
    const [ofServer] = (await arrived) as [net.Socket]
    const first = `${method} /health HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(10_000)}`
    socket.write(first)
    await until('the first packet is read', () => ofServer.bytesRead === first.length)
    socket.write(`${'a'.repeat(10_000)}\r\n\r\n`)
    await once(socket, 'close')
    const [head, body] = received.split('\r\n\r\n') as [string, string]
    const limit = `the head of the request is larger than ${http.maxHeaderSize} bytes`
    assert.ok(head.startsWith(`HTTP/1.1 431 ${limit}\r\n`), head)
    assert.match(head, /^content-length: 0$/m)
    assert.match(head, /^connection: close$/m)
    assert.equal(body, '')
  }
})

test('bytes that are not HTTP are 400 with a text', async () => {
  for (const sent of [
    'nonsense\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n',
    'GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: y\r\n\r\n',
  ])
    await assertRefused([sent], 400, /^the request is not HTTP: .+/)
})

test('an invalid HEAD is 400 without a text, which a client would read as the next answer', async () => {
  for (const sent of [
    'HEAD \\health HTTP/1.1\r\nHost: x\r\n\r\n',
    'HEAD /health HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n',
  ]) {
    const { status, headers, body, received } = await exchange(sent)
    assert.deepEqual([status, headers.connection, body], [400, 'close', ''], received)
  }
})

test('an invalid HEAD in one packet with the rest of a body that was answered before has no text, either', async () => {
  const socket = net.connect({ host: '127.0.0.1', port })
  const answers: string[] = []
  socket.setEncoding('latin1').on('data', (piece) => answers.push(String(piece)))
  socket.write('POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n')
  await until('the first answer is there', () => answers.join('').includes('\r\n\r\n'))
  assert.match(answers.splice(0).join(''), /^HTTP\/1\.1 404 /)
  socket.write('abcHEAD \\health HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket, 'close')
  assert.match(answers.join(''), /^HTTP\/1\.1 400 the request is not HTTP: [^\r\n]+\r\n/)
  assert.equal(answers.join('').split('\r\n\r\n')[1], '')
})

test('chunk extensions that are too long are 413 with a text', async () => {
  const head =
    'POST /pod/spec HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  await assertRefused(
    [head, `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`],
    413,
    /^the extensions of a chunk are too long$/,
  )
})

test('a missing, repeated or invalid Host is 400 with a text (RFC 9112, 3.2)', async () => {
  const ask = (version: string, ...fields: string[]) => [
    [`GET /version HTTP/${version}`, ...fields, '', ''].join('\r\n'),
  ]
  await assertRefused(ask('1.1'), 400, /^host: expected one field, not 0$/)
  await assertRefused(ask('1.1', 'Host: a', 'Host: a'), 400, /^host: expected one field, not 2$/)
  await assertRefused(ask('1.1', 'Host: a', 'hOST: b', 'Host: c'), 400, /^host: expected one field, not 3$/)
  await assertRefused(ask('1.0', 'Host: a', 'Host: b'), 400, /^host: expected one field, not 2$/)
  await assertRefused(ask('1.1', 'Host: a b'), 400, /^host: expected a name or an address, with a port or without$/)
})

test('a target or a host that makes no URL is 400 with a text', async () => {
  const text = /^the target and the host of the request make no URL$/
  for (const target of ['*', 'http://a:99999/health', 'ftp://a/health', '/a\\b'])
    await assertRefused([`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`], 400, text)
  await assertRefused(['OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n'], 400, text)
  for (const host of ['broker:99999', '[:::]', '1.2.3.4.5:80'])
    await assertRefused([`GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`], 400, text)
  const { status, headers, body } = await exchange('HEAD * HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.deepEqual([status, headers.connection, body], [400, 'close', ''])
  assert.ok(headers['x-request-id'])
})

test('invalid bytes behind a request are answered once at most, and nothing follows that answer', async () => {
  const { received } = await exchange('GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n', 'nonsense\r\n\r\n')
  const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)
  assert.ok(['404', '404,400', '400'].includes(statuses.join()), received)
})

test('an answer that has begun is cut, and not followed by a 400, when invalid bytes arrive', async (t) => {
  const { server: beginning, address } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }], {
    before: (_, outgoing) => {
      outgoing.write('the first part')
      return true
    },
  })
  t.after(() => beginning.close())
  const socket = net.connect(address)
  let received = ''
  socket.setEncoding('latin1').on('data', (piece) => {
    received += piece
  })
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket, 'data')
  socket.write('nonsense\r\n\r\n')
  await once(socket, 'close')
  assert.match(received, /^HTTP\/1\.1 200 /)
  assert.doesNotMatch(received, /HTTP\/1\.1 400 /)
})

test('the document lists 431 for every operation', () => {
  for (const [path, methods] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(methods))
      assert.ok((operation.responses as Record<string, unknown>)[431], `${method} ${path}`)
})
