import type { AddressInfo } from 'node:net'
import net from 'node:net'
import test, { after } from 'node:test'
import { Hono } from 'hono'
import { listen } from '../../lib/http/server/listen.ts'
import { until } from '../support/until.ts'

let go = () => {}
const held = new Promise<void>((resolve) => {
  go = resolve
})
const app = new Hono()
  .get('/held', async (c) => {
    await held
    return c.text('held')
  })
  .all('/bytes', async (c) => {
    await c.req.arrayBuffer()
    return c.body(new Uint8Array(Buffer.from('bytes')))
  })
const { server } = await listen(app.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})

function connect() {
  const wire = { socket: net.connect({ host: '127.0.0.1', port }), received: '' }
  wire.socket.setEncoding('latin1').on('data', (text) => {
    wire.received += text
  })
  after(() => wire.socket.destroy())
  return wire
}
/** The answers in the order of their arrival: the status line and the body of each. */
const shape = (received: string) => received.replace(/(HTTP\/1\.1 \d+)[^\r]*\r\n(?:[^\r]+\r\n)*\r\n/g, '<$1>')

test('a client that expects 100 Continue gets it before it sends the body', async () => {
  const wire = connect()
  wire.socket.write('POST /bytes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n')
  await until('the server says go on', () => wire.received === 'HTTP/1.1 100 Continue\r\n\r\n')
  wire.socket.write('{}')
  await until('it answers', () => shape(wire.received) === '<HTTP/1.1 100><HTTP/1.1 200>bytes')
})

test('100 Continue for a pipelined request comes after the answer to the request before it', async () => {
  const wire = connect()
  wire.socket.write('GET /held HTTP/1.1\r\nHost: x\r\n\r\n')
  wire.socket.write('POST /bytes HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}')
  // Another connection is served while the second answer waits.
  const other = connect()
  other.socket.write('GET /bytes HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3))
  await until('the other is served', () => shape(other.received) === '<HTTP/1.1 200>bytes'.repeat(3))
  go()
  await until('both are answered', () => shape(wire.received) === '<HTTP/1.1 200>held<HTTP/1.1 100><HTTP/1.1 200>bytes')
})
