import postgres from 'postgres'
import { within } from '../time/within.ts'
import { readAddress, urlParameters } from './address.ts'
import type { Connection } from './driver-options.ts'
import { DatabaseUnavailable } from './errors.ts'
import { dial, type Endpoint } from './socket.ts'
import { secured } from './tls.ts'

/**
 * The parts of a connection; a URL is parsed.
 * @throws AddressError
 */
export const partsOf = (connection: Connection): Exclude<Connection, string> =>
  typeof connection === 'string' ? readAddress(urlParameters(connection, 'the URL')) : connection

/**
 * A driver pool on any connection this service accepts. The environment is ignored: the connection has all parameters.
 * The session settings of `options` override those of the connection, except for the application's name.
 */
export function openPool<T extends Record<string, postgres.PostgresType>>(
  connection: Connection,
  options: postgres.Options<T> = {},
): postgres.Sql {
  const { tls, settings = {}, password, ...where } = partsOf(connection)
  let attempts = 0
  const own: Record<string, unknown> = {
    ...where,
    pass: typeof password === 'function' ? password : () => password ?? '',
    ssl: false,
    sslnegotiation: null,
    socket: (endpoint: Endpoint) => {
      const index = attempts++
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

/** The driver always reads this variable, and throws at libpq values that it does not know. */
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

const CONNECT_TIMEOUT_MS = 5_000

/**
 * The answer to the first statement on a connection. Connections are opened without the driver's own timer, which may
 * fire on a socket that the driver has dropped, and then throws where nobody can catch it.
 * @throws DatabaseUnavailable CONNECT_TIMEOUT after 5 s
 */
export async function withConnectTimeout<T extends object>(first: PromiseLike<T>): Promise<T> {
  const answer = await within(first, CONNECT_TIMEOUT_MS)
  if (answer === undefined)
    throw new DatabaseUnavailable(`no answer within ${CONNECT_TIMEOUT_MS} ms`, 'CONNECT_TIMEOUT')
  return answer
}
