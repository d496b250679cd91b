/** Opens the sockets the driver talks through, so that a connection can be cut without asking the driver, which may be stuck. */
import net from 'node:net'

/** The part of the driver's parsed options that says where the server is. */
export interface Endpoint {
  host: string[]
  port: number[]
  /** Unix socket; goes before hosts. */
  path?: string | undefined
  user?: string
  database?: string
}

const KEEP_ALIVE_MS = 30_000

/** A socket on its way to host number `index` (modulo their count); the driver may write to it before it is connected. */
export function dial({ host, port, path }: Endpoint, index: number): net.Socket {
  const at = index % host.length
  const socket = net.connect(
    path
      ? { path }
      : {
          host: host[at] ?? 'localhost',
          port: port[at] ?? 5432,
          noDelay: true,
          keepAlive: true,
          keepAliveInitialDelay: KEEP_ALIVE_MS,
        },
  )
  // The driver's TLS takes the name to verify from here.
  return Object.assign(socket, { host: host[at], port: port[at] })
}
