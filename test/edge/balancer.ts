/** Simulates a Service of Kubernetes: a TCP port that passes each new connection to a replica reported as ready. */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { after } from 'node:test'
import { get } from '../support/broker.ts'

const PROBE_MS = 100
/** Delay until a node learns of a change of a pod. */
const PROPAGATION_MS = 1_500

/** A broker or an edge proxy. */
interface Replica {
  readonly port: number
  readonly admin: string
}

interface Endpoint {
  readonly replica: Replica
  isListed: boolean
  /** Connections passed to this replica. */
  connections: number
}

export async function startBalancer() {
  const endpoints = new Map<Replica, Endpoint>()
  const open = new Set<net.Socket>()
  /** Connections that no replica took. */
  let refused = 0
  let turn = 0

  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const listed = [...endpoints.values()].filter(({ isListed }) => isListed)
    const endpoint = listed[turn++ % Math.max(1, listed.length)]
    open.add(client)
    client.on('close', () => open.delete(client))
    client.on('error', () => {})
    if (!endpoint) {
      refused++
      client.destroy()
      return
    }
    endpoint.connections++
    const { port } = endpoint.replica
    const upstream = net.connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true })
    let isConnected = false
    upstream.once('connect', () => {
      isConnected = true
    })
    upstream.on('error', () => {
      if (!isConnected) refused++
      if (!client.destroyed) client.resetAndDestroy()
    })
    client.on('close', () => upstream.destroy())
    client.pipe(upstream)
    upstream.pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')

  const probe = setInterval(() => {
    for (const endpoint of endpoints.values()) {
      get(`${endpoint.replica.admin}/readyz`).then(
        ({ status }) => hear(endpoint, status === 200),
        () => hear(endpoint, false),
      )
    }
  }, PROBE_MS)
  const hear = (endpoint: Endpoint, isReady: boolean) =>
    void setTimeout(() => {
      endpoint.isListed = isReady
    }, PROPAGATION_MS).unref()
  after(() => {
    clearInterval(probe)
    for (const socket of open) socket.destroy()
    server.close()
  })

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    add(replica: Replica): Endpoint {
      const endpoint = { replica, isListed: false, connections: 0 }
      endpoints.set(replica, endpoint)
      return endpoint
    },
    remove: (replica: Replica) => void endpoints.delete(replica),
    get refused() {
      return refused
    },
  }
}
