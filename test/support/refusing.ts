import { once } from 'node:events'
import net from 'node:net'
import type { TestContext } from 'node:test'

/**
 * A server that answers every client with one error and disconnects. `at` is where it listens, by default a port of
 * loopback.
 */
export async function startRefusing(
  t: TestContext,
  severity: string,
  code: string,
  at: net.ListenOptions = { host: '127.0.0.1', port: 0 },
): Promise<net.Server> {
  const fields = Buffer.from(`S${severity}\0V${severity}\0C${code}\0Mtold\0\0`)
  const head = Buffer.from('E\0\0\0\0')
  head.writeInt32BE(4 + fields.length, 1)
  const server = net.createServer((socket) =>
    socket.on('error', () => {}).once('data', () => socket.end(Buffer.concat([head, fields]))),
  )
  t.after(() => server.close())
  await once(server.listen(at), 'listening')
  return server
}
