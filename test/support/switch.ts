/** What a pooler is to its clients when the database fails over: their connections survive, and another server answers. */
import { once } from 'node:events'
import net from 'node:net'
import { splitter } from './wire.ts'

type Target = { host: string; port: number; user: string; password: string; database: string }

interface Pair {
  client: net.Socket
  upstream: net.Socket
  /** What the client began with: said again to another server, whose answer is swallowed. The servers must trust the client. */
  startup: Buffer | null
}

/** Listens on a free loopback port and passes on to `first`, until told otherwise. */
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
    /** Connections of clients so far. */
    get accepted() {
      return accepted
    },
    /** Every connection leads to another server from now on, and none of the clients notices. No statement may be under way. */
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
