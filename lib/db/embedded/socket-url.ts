import postgres from 'postgres'
import { readAddress, urlParameters } from '../address.ts'
import type { Connection } from '../driver-options.ts'
import { dial, type Endpoint } from '../socket.ts'
import { secured } from '../tls.ts'
import type { TlsSettings } from '../tls-settings.ts'

/** Where a server listens on a unix socket; accepted as it is by the `postgres` driver. */
export interface SocketOptions {
  /** The socket's folder, absolute. */
  host: string
  port: number
  user: string
  database: string
}

/** The libpq form: the folder percent-encoded in the place of the host. */
export function socketUrl({ host, port, user, database }: SocketOptions): string {
  return `postgresql://${encodeURIComponent(user)}@${encodeURIComponent(host)}:${port}/${encodeURIComponent(database)}`
}

/** The TLS that a connection asks for. */
export const tlsOf = (connection: Connection): TlsSettings | undefined =>
  typeof connection === 'string' ? readAddress(urlParameters(connection, 'the URL')).tls : connection.tls

/**
 * A driver pool on any connection this service accepts. The environment has no say: what is to count of it is in the connection.
 * The session settings of `options` go before those of the connection, but for the name.
 */
export function openPool<T extends Record<string, postgres.PostgresType>>(
  connection: Connection,
  options: postgres.Options<T> = {},
): postgres.Sql {
  const { tls, settings, password, ...where } =
    typeof connection === 'string' ? readAddress(urlParameters(connection, 'the URL')) : { settings: {}, ...connection }
  let dialled = 0
  const own: Record<string, unknown> = {
    ...where,
    pass: typeof password === 'function' ? password : () => password ?? '',
    ssl: false,
    sslnegotiation: null,
    socket: (endpoint: Endpoint) => {
      const index = dialled++
      return secured(dial(endpoint, index), endpoint, index, tls)
    },
    ...options,
    connection: {
      ...settings,
      ...options.connection,
      ...(settings.application_name === undefined ? {} : { application_name: settings.application_name }),
    },
  }
  return hidden('PGTARGETSESSIONATTRS', () => postgres(own as postgres.Options<T>) as postgres.Sql)
}

/** The driver looks for this one whatever it is told, and throws at a value of libpq's that it does not know. */
function hidden<T>(variable: string, work: () => T): T {
  const value = process.env[variable]
  if (value === undefined) return work()
  delete process.env[variable]
  try {
    return work()
  } finally {
    process.env[variable] = value
  }
}
