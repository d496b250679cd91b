import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import net from 'node:net'
import test, { after } from 'node:test'
import { listen } from '../../lib/http/server/listen.ts'
import { startApp } from '../support/app.ts'
import { flow } from '../support/broker.ts'
import { podPost } from '../support/records.ts'
import { becomes } from '../support/until.ts'

const app = await startApp()
const { server } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => server.close())

/** Sends the text unchanged and reads until the server ends the connection. */
async function exchange(text: string): Promise<{ status: number; head: string; body: string }> {
  const socket = net.connect({ host: '127.0.0.1', port })
  socket.setEncoding('latin1')
  let received = ''
  socket.on('data', (piece) => {
    received += piece
  })
  socket.write(text)
  await once(socket, 'close')
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(received) ?? assert.fail(received)
  const end = received.indexOf('\r\n\r\n')
  return { status: Number(status), head: received.slice(0, end), body: received.slice(end + 4) }
}

/** `Connection: close`, since HTTP/1.1 keeps the connection open. */
const ask = (version: string, path: string, ...headers: string[]) =>
  exchange([`GET ${path} HTTP/${version}`, 'Connection: close', ...headers, '', ''].join('\r\n'))

test('HTTP/1.0 without Host is served: probes, look-ups, writes and lists', async () => {
  const body = JSON.stringify(podPost({ pod_name: 'old-client' }))
  const posted = await exchange(
    `POST /pod/spec HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  assert.equal(posted.status, 200, posted.body)
  assert.equal(JSON.parse(posted.body).pod_name, 'old-client')
  assert.equal(JSON.parse((await ask('1.0', '/pod/name/old-client')).body).pod_name, 'old-client')
  assert.deepEqual(JSON.parse((await ask('1.0', '/pod/info?include_dead=false')).body).length, 1)
  await becomes(async () => (await ask('1.0', '/health')).body, 'Healthy!')
  assert.equal((await ask('1.0', '/nothing')).status, 404)
})

test('a streamed list to an HTTP/1.0 client has no chunks and ends with the connection', async () => {
  assert.equal((await app.post('/pod/traffic/batch', [flow(1, 'streamed'), flow(2, 'streamed')])).json, 2)
  const { status, head, body } = await ask('1.0', '/pod/traffic/streamed')
  assert.equal(status, 200)
  assert.ok(!/transfer-encoding/i.test(head), head)
  assert.equal(JSON.parse(body).length, 2)
})

test('HTTP/1.0 with Host is served', async () => {
  await becomes(async () => (await ask('1.0', '/health', 'Host: broker:9090')).status, 200)
})

test('HTTP/1.1 without Host is 400 (RFC 9112, 3.2)', async () => {
  assert.equal((await ask('1.1', '/health')).status, 400)
})

for (const host of ['broker', 'broker.ns.svc:9090', '127.0.0.1:1', '[::1]:9090', 'BROKER', '']) {
  test(`Host: ${JSON.stringify(host)} is served`, async () => {
    await becomes(async () => (await ask('1.1', '/health', `Host: ${host}`)).status, 200)
  })
}

for (const host of ['a b', 'a/b', 'user@host', 'a?b', 'a#b', '[::1', 'a:b', '\u{ff}\u{fe}']) {
  for (const version of ['1.0', '1.1']) {
    test(`Host: ${JSON.stringify(host)} of HTTP/${version} is 400`, async () => {
      assert.equal((await ask(version, '/health', `Host: ${host}`)).status, 400)
    })
  }
}
