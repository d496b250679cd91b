/** A request that is answered before its whole body has arrived. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import net from 'node:net'
import test, { type TestContext } from 'node:test'
import { Hono } from 'hono'
import type { DrainLimits } from '../../lib/http/server/drain-body.ts'
import { listen } from '../../lib/http/server/listen.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024
const REFUSED = 'HTTP/1.1 413 '
const NEXT = 'GET /next HTTP/1.1\r\nHost: x\r\n\r\n'

async function client(t: TestContext, drain: Partial<DrainLimits> = {}) {
  const asked: string[] = []
  const app = new Hono()
    .use((c, next) => {
      asked.push(c.req.path)
      return next()
    })
    .post('/refused', (c) => c.text('too large', 413))
    .get('/next', (c) => c.text('next'))
  const { server } = await listen(app.fetch, [{ host: '127.0.0.1', port: 0 }], { drain })
  const { port } = server.address() as AddressInfo
  const accepted = once(server, 'connection')
  const socket = net.connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  const wire = {
    socket,
    asked,
    received: '',
    ended: once(socket, 'end'),
    ofServer: (await accepted)[0] as net.Socket,
    errors: [] as Error[],
  }
  socket.setEncoding('latin1').on('data', (text) => {
    wire.received += text
  })
  socket.on('error', (error) => wire.errors.push(error))
  t.after(() => {
    socket.destroy()
    server.closeAllConnections()
    server.close()
  })
  if (socket.connecting) await once(socket, 'connect')
  return wire
}

const head = (bytes: number) => `POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: ${bytes}\r\n\r\n`

/** Blocks the process: no bytes are read and no timer runs. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

test('a body that arrives after the process was blocked for a second is read, and the next request is answered', async (t) => {
  const wire = await client(t)
  wire.socket.write(head(2 * MIB))
  await until('it is refused', () => wire.received.startsWith(REFUSED))
  wire.socket.write(Buffer.alloc(MIB))
  standStill(1_000)
  wire.socket.write(Buffer.alloc(MIB))
  wire.socket.write(NEXT)
  await until('the next is answered', () => wire.received.endsWith('\r\n\r\nnext'))
})

test('with `Connection: close` the server ends its side after the answer, and closes the connection after the body', async (t) => {
  const wire = await client(t)
  const first = head(2 * MIB).replace('Host', 'Connection: close\r\nHost')
  wire.socket.write(first)
  await wire.ended
  assert.ok(wire.received.startsWith(REFUSED))
  wire.socket.write(Buffer.alloc(MIB))
  await until('it has come', () => wire.ofServer.bytesRead === first.length + MIB)
  wire.socket.write(Buffer.alloc(MIB))
  wire.socket.write(NEXT)
  await until('the connection is closed', () => wire.ofServer.destroyed)
  assert.equal(wire.ofServer.bytesRead, first.length + 2 * MIB + NEXT.length)
  assert.deepEqual(wire.errors, [])
  assert.deepEqual(wire.asked, ['/refused'])
})

test('an earlier refused request does not cut the body of the last one, and both are answered', async (t) => {
  const wire = await client(t)
  const [first, last] = [head(2), head(MIB).replace('Host', 'Connection: close\r\nHost')]
  wire.socket.write(first)
  await until('the first is refused', () => wire.received.startsWith(REFUSED))
  wire.socket.write(`{}${last}`)
  await wire.ended
  standStill(200)
  await new Promise((resolve) => setTimeout(resolve, 0))
  wire.socket.write(Buffer.alloc(MIB))
  await until('the connection is closed', () => wire.ofServer.destroyed)
  assert.equal(wire.ofServer.bytesRead, first.length + 2 + last.length + MIB)
  assert.deepEqual(wire.errors, [])
  assert.deepEqual([wire.asked, wire.received.split(REFUSED).length - 1], [['/refused', '/refused'], 2])
})

test('a chunked body is read to its end, too', async (t) => {
  const wire = await client(t)
  wire.socket.write('POST /refused HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
  await until('it is refused', () => wire.received.startsWith(REFUSED))
  wire.socket.write(`10000\r\n${'x'.repeat(65_536)}\r\n0\r\n\r\n${NEXT}`)
  await until('the next is answered', () => wire.received.endsWith('\r\n\r\nnext'))
})

test('the connection is closed if the rest of the body does not arrive in time', async (t) => {
  const wire = await client(t, { maxMs: 20 })
  wire.socket.write(head(2 * MIB))
  await wire.ended
  assert.ok(wire.received.startsWith(REFUSED))
})

test('the connection is closed if the rest of the body is too large', async (t) => {
  const wire = await client(t, { maxBytes: MIB, maxMs: 900_000 })
  wire.socket.write(head(1_000 * MIB))
  await until('it is refused', () => wire.received.startsWith(REFUSED))
  wire.socket.write(Buffer.alloc(MIB))
  assert.equal(wire.socket.destroyed, false)
  wire.socket.write(Buffer.alloc(MIB))
  await wire.ended
})

test('after the end of a body no timer closes the connection', async (t) => {
  const wire = await client(t, { maxMs: 2_000 })
  wire.socket.write(head(2))
  await until('it is refused', () => wire.received.startsWith(REFUSED))
  wire.socket.write(`{}${NEXT}`)
  await until('the next is answered', () => wire.received.endsWith('\r\n\r\nnext'))
  standStill(2_500)
  wire.socket.write(NEXT)
  await until('the one after it is answered', () => wire.received.split('\r\n\r\nnext').length === 3)
})
