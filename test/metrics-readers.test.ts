/** Memory held by scrapes that nobody reads. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import test from 'node:test'
import { close, listen } from '../lib/http/server/listen.ts'
import { MAX_OUTGOING } from '../lib/telemetry/scrape.ts'
import { startApp } from './support/app.ts'
import { until } from './support/until.ts'

const app = await startApp()
/** Long enough that an answer does not fit into the buffers of the kernel. */
const LONG = '"'.repeat(253)

test('GET /metrics 200: many clients that do not read hold only a limited number of different texts', async () => {
  for (let i = 0; i < 10_000; i++)
    app.deps.denials.series.add({
      workload_namespace: LONG,
      workload_kind: LONG,
      workload_name: `${LONG}${i}`,
      action: 'SCMP_ACT_LOG',
      denials: 1,
    })
  const { server, address } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
  const sockets: Socket[] = []
  try {
    const ask = async () => {
      const socket = connect(address.port, '127.0.0.1')
      sockets.push(socket)
      socket.write('GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
      await once(socket, 'readable')
      return socket
    }
    /** The uptime in a text, which tells when it was made. */
    const madeAt = async (socket: Socket) => {
      const pieces: Buffer[] = []
      for await (const piece of socket) pieces.push(piece as Buffer)
      const text = Buffer.concat(pieces).toString()
      assert.ok(text.endsWith('} 1\n'))
      return /^broker_uptime_seconds (\S+)$/m.exec(text)![1]
    }
    const silent: Socket[] = []
    for (let i = 0; i < MAX_OUTGOING + 8; i++) silent.push(await ask())
    const kept = new Set<string | undefined>()
    for (const socket of silent) kept.add(await madeAt(socket))
    assert.equal(kept.size, MAX_OUTGOING)
    await until('what was read is gone', async () => !kept.has(await madeAt(await ask())))
  } finally {
    for (const socket of sockets) socket.destroy()
    await close(server, 0)
  }
})
