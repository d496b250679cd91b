import postgres from 'postgres'
import { readAddress, urlParameters } from './address.ts'
import type { Connection } from './driver-options.ts'
import { dial, type Endpoint } from './socket.ts'
import { secured } from './tls.ts'

/**
 * The parts of a connection; a URL is taken apart.
 * @throws AddressError
 */
export const partsOf = (connection: Connection): Exclude<Connection, string> =>
  typeof connection === 'string' ? readAddress(urlParameters(connection, 'the URL')) : connection

/**
 * A driver pool on any connection this service accepts. The environment has no say: what is to count of it is in the connection.
 * The session settings of `options` go before those of the connection, but for the name.
 */
export function openPool<T extends Record<string, postgres.PostgresType>>(
  connection: Connection,
  options: postgres.Options<T> = {},
): postgres.Sql {
  const { tls, settings = {}, password, ...where } = partsOf(connection)
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
