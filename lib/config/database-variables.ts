/** Reads the address of the database: DATABASE_URL, libpq's variables, and a password file. */
import { readFileSync } from 'node:fs'
import {
  type Address,
  AddressError,
  environmentParameters,
  type Parameters,
  readAddress,
  urlParameters,
} from '../db/address.ts'
import { trimmed } from './variables.ts'

const PASSWORD_FILE = 'DATABASE_PASSWORD_FILE'

/** Rows for the table of variables in the documentation. */
export const databaseVariables: readonly (readonly [name: string, type: string, shown: string, meaning: string])[] = [
  [
    PASSWORD_FILE,
    'path',
    'unset',
    'File of the password of `DATABASE_URL` or `PGHOST`, read again for each connection.',
  ],
  ['PGHOST', 'host or folder', 'unset', 'Where `DATABASE_URL` does not say: the server, several with commas between.'],
  ['PGPORT', 'port', '`5432`', 'The same: its port.'],
  ['PGUSER', 'text', 'the account', 'The same: the role.'],
  ['PGPASSWORD', 'text', 'unset', 'The same: the password.'],
  ['PGDATABASE', 'text', 'the role', 'The same: the database.'],
  [
    'PGSSLMODE',
    'disable, prefer, require, verify-ca, verify-full',
    '`disable`',
    'The same: TLS, as `?sslmode=` in `DATABASE_URL`.',
  ],
  [
    'PGSSLROOTCERT',
    'path, system',
    'unset',
    'The same: file of the authority that signed the server, as `?sslrootcert=`.',
  ],
  ['PGSSLCERT', 'path', 'unset', 'The same: file of our certificate, as `?sslcert=`.'],
  ['PGSSLKEY', 'path', 'unset', 'The same: file of its key, as `?sslkey=`.'],
]

/**
 * Returns the address of the external database that DATABASE_URL or PGHOST names, or null for the embedded one. Parts
 * missing from DATABASE_URL come from libpq's variables. Unusable values are added to `errors`.
 */
export function readDatabase(
  url: string | null,
  env: NodeJS.ProcessEnv,
  errors: string[],
  warnings: string[],
): Address | null {
  const file = trimmed(env, PASSWORD_FILE)
  const variables = environmentParameters(env)
  if (url === null && !variables.has('host')) {
    const unused = [...(file === '' ? [] : [PASSWORD_FILE]), ...[...variables.values()].map(({ source }) => source)]
    if (unused.length > 0)
      warnings.push(`${unused.join(', ')}: not used, since neither DATABASE_URL nor PGHOST names a server`)
    return null
  }
  try {
    const parameters: Parameters = new Map([...variables, ...(url === null ? [] : urlParameters(url, 'DATABASE_URL'))])
    const address = readAddress(parameters)
    return file === '' ? address : { ...address, password: readPassword(file, parameters) }
  } catch (error) {
    if (!(error instanceof AddressError)) throw error
    errors.push(error.message)
    return null
  }
}

/** The address as text, without the password. */
export function printableDatabase({ host, port, path, user, database, tls }: Address): string {
  const servers = host.map((name, at) => `${name.includes(':') ? `[${name}]` : name}:${port[at]}`).join(', ')
  return `${database} as ${user} at ${path ?? `${servers}, sslmode=${tls.mode}`}`
}

function readPassword(file: string, parameters: Parameters): () => string {
  const other = parameters.get('password')
  if (other?.source === 'DATABASE_URL')
    throw new AddressError(`${PASSWORD_FILE} is set and DATABASE_URL holds a password: keep one`)
  if (other) throw new AddressError(`${PASSWORD_FILE} and ${other.source} are both set: keep one`)
  const read = () => readFileSync(file, 'utf8').replace(/[\r\n]+$/, '')
  let last: string
  try {
    last = read()
  } catch (error) {
    throw new AddressError(`${PASSWORD_FILE}: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  if (last === '') throw new AddressError(`${PASSWORD_FILE}: ${file} is empty`)
  return () => {
    // The file may be missing or empty while it is replaced, and the driver does not survive an exception here.
    try {
      last = read() || last
    } catch {}
    return last
  }
}
