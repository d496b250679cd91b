/**
 * A session pooler, as far as startup packets go. It refuses settings that it does not keep for each client, as
 * PgBouncer does by default, or swallows them, as PgBouncer does with `ignore_startup_parameters`. It passes on
 * everything else.
 */
import { once } from 'node:events'
import net from 'node:net'
import { after } from 'node:test'

const KEPT = [
  'user',
  'database',
  'client_encoding',
  'DateStyle',
  'TimeZone',
  'standard_conforming_strings',
  'application_name',
]
const HEAD_BYTES = 8

export interface Pooler {
  /** For `openDatabase` and `migrate`. */
  readonly connection: { host: string; port: number; user: string; database: string }
  /** Numbers of connections that were refused and let through. */
  readonly refused: number
  readonly passed: number
}

const poolers: net.Server[] = []
const sockets = new Set<net.Socket>()
after(() => {
  for (const socket of sockets) socket.destroy()
  for (const pooler of poolers) pooler.close()
})

export async function startPooler(url: string, unknown: 'refused' | 'swallowed'): Promise<Pooler> {
  const { hostname, port, username, pathname } = new URL(url)
  const host = decodeURIComponent(hostname)
  let refused = 0
  let passed = 0
  const server = net.createServer(async (client) => {
    sockets.add(client)
    client.on('error', () => {})
    client.once('close', () => sockets.delete(client))
    const [packet] = (await once(client, 'data')) as [Buffer]
    const parts = packet.subarray(HEAD_BYTES, -1).toString().split('\0').slice(0, -1)
    const settings = parts.flatMap((name, at) => (at % 2 === 0 ? [[name, parts[at + 1]!] as const] : []))
    const strange = settings.find(([name]) => !KEPT.includes(name))
    if (strange && unknown === 'refused') {
      refused++
      client.end(failure('08P01', `unsupported startup parameter: ${strange[0]}`))
      return
    }
    passed++
    const upstream = host.startsWith('/') ? net.connect(`${host}/.s.PGSQL.${port}`) : net.connect(Number(port), host)
    sockets.add(upstream)
    upstream.on('error', () => client.destroy())
    upstream.once('close', () => client.destroy())
    client.once('close', () => upstream.destroy())
    const known = settings.filter(([name]) => KEPT.includes(name)).flat()
    const body = Buffer.from(`${known.join('\0')}\0\0`)
    const head = Buffer.alloc(HEAD_BYTES)
    head.writeInt32BE(HEAD_BYTES + body.length)
    packet.copy(head, 4, 4, HEAD_BYTES)
    upstream.write(Buffer.concat([head, body]))
    client.pipe(upstream).pipe(client)
  })
  poolers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    connection: {
      host: '127.0.0.1',
      port: (server.address() as net.AddressInfo).port,
      user: decodeURIComponent(username),
      database: pathname.slice(1),
    },
    get refused() {
      return refused
    },
    get passed() {
      return passed
    },
  }
}

function failure(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}
