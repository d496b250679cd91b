/** A pooler during a failover of the database: client connections survive, and another server answers. */
import { once } from 'node:events'
import net from 'node:net'
import { splitter } from './wire.ts'

type Target = { host: string; port: number; user: string; password: string; database: string }

interface Pair {
  client: net.Socket
  upstream: net.Socket
  /**
   * The startup bytes of the client, which are sent to the next server too; its answer is swallowed. The servers must
   * trust the client.
   */
  startup: Buffer | null
}

/** Listens on a free loopback port and passes on to `first` until `to` is called. */
export async function startSwitch(first: Target) {
  const pairs = new Set<Pair>()
  let target = first
  let accepted = 0
  const server = net.createServer({ noDelay: true }, (client) => {
    accepted++
    const pair: Pair = { client, upstream: dial(target), startup: null }
    pairs.add(pair)
    client.on('data', (bytes) => {
      pair.startup ??= bytes
      pair.upstream.write(bytes)
    })
    client.on('error', () => {})
    client.on('close', () => {
      pair.upstream.destroy()
      pairs.delete(pair)
    })
    attach(pair)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  function attach({ client, upstream }: Pair): void {
    upstream.on('data', (bytes) => client.write(bytes))
    upstream.on('error', () => {})
    upstream.on('close', () => client.destroy())
  }

  return {
    connection: { ...first, host: '127.0.0.1', port: (server.address() as net.AddressInfo).port },
    /** Number of client connections so far. */
    get accepted() {
      return accepted
    },
    /** Moves every connection to another server without the client noticing. No statement may be running. */
    async to(next: Target): Promise<void> {
      target = next
      await Promise.all(
        [...pairs].map(async (pair) => {
          pair.upstream.removeAllListeners()
          pair.upstream.on('error', () => {})
          pair.upstream.destroy()
          pair.upstream = dial(next)
          pair.upstream.write(pair.startup!)
          const answered = splitter('server')
          for await (const [bytes] of on(pair.upstream)) if (answered(bytes).some(({ type }) => type === 'Z')) break
          attach(pair)
        }),
      )
    },
    async close(): Promise<void> {
      for (const { client } of pairs) client.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function* on(socket: net.Socket): AsyncGenerator<[Buffer]> {
  for (;;) yield (await once(socket, 'data')) as [Buffer]
}

const dial = ({ host, port }: Target) =>
  host.startsWith('/') ? net.connect({ path: `${host}/.s.PGSQL.${port}` }) : net.connect({ host, port, noDelay: true })
