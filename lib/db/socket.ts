/** Opens the sockets of the driver, so that a connection can be cut without the driver, which may be stuck. */
import net from 'node:net'

/** The address of the server in the driver's parsed options. */
export interface Endpoint {
  host: string[]
  port: number[]
  /** Unix socket; takes precedence over hosts. */
  path?: string | undefined
}

const KEEP_ALIVE_MS = 30_000

/**
 * A connecting socket to host number `index` (modulo their count). The driver may write to it before it is connected.
 */
export function dial({ host, port, path }: Endpoint, index: number): net.Socket {
  const at = index % host.length
  return net.connect(
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
}
