/**
 * Reads the address and the login of the database: a connection URL, and libpq's variables for parts that the URL
 * leaves out (PostgreSQL 18, 32.1.1 and 32.15). The driver's own reading is not used: it knows neither IPv6 addresses
 * nor socket folders, confuses the modes of TLS, and sends unknown parameters to the server.
 */
import { userInfo } from 'node:os'
import { readTls, TLS_PARAMETERS, type TlsSettings } from './tls-settings.ts'

/** The URL or a variable cannot be used. The message names its place and never a value. */
export class AddressError extends Error {
  override readonly name = 'AddressError'
}

/**
 * The options of the driver for a server, with every field that the driver would otherwise read from the environment.
 */
export interface Address {
  host: string[]
  port: number[]
  /** Unix socket; takes precedence over hosts. */
  path?: string
  user: string
  /** Called for each connection. Must not throw. */
  password: () => string
  database: string
  tls: TlsSettings
  /** Session settings of the URL. */
  settings: Record<string, string>
  target_session_attrs?: string
}

/** Values by libpq's keywords; `source` is the variable that holds the value. */
export type Parameters = Map<string, { value: string; source: string }>

const DEFAULT_PORT = 5432
const SERVERS = ['read-write', 'read-only', 'primary', 'standby', 'prefer-standby', 'any']

/** The libpq variables that are read, by keyword. */
const VARIABLES: Record<string, string> = {
  host: 'PGHOST',
  port: 'PGPORT',
  user: 'PGUSER',
  password: 'PGPASSWORD',
  dbname: 'PGDATABASE',
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
  sslnegotiation: 'PGSSLNEGOTIATION',
  target_session_attrs: 'PGTARGETSESSIONATTRS',
  hostaddr: 'PGHOSTADDR',
  service: 'PGSERVICE',
  requirepeer: 'PGREQUIREPEER',
  require_auth: 'PGREQUIREAUTH',
  channel_binding: 'PGCHANNELBINDING',
  gssencmode: 'PGGSSENCMODE',
  sslcrl: 'PGSSLCRL',
  sslcrldir: 'PGSSLCRLDIR',
  ssl_min_protocol_version: 'PGSSLMINPROTOCOLVERSION',
  ssl_max_protocol_version: 'PGSSLMAXPROTOCOLVERSION',
}

/**
 * Parameters that are refused because ignoring them would be unsafe or surprising, with the values that change nothing.
 */
const UNSUPPORTED: Record<string, readonly string[]> = {
  hostaddr: [],
  service: [],
  servicefile: [],
  passfile: [],
  requirepeer: [],
  require_auth: [],
  channel_binding: ['disable', 'prefer'],
  gssencmode: ['disable', 'prefer'],
  sslcrl: [],
  sslcrldir: [],
  sslpassword: [],
  sslcertmode: ['disable', 'allow'],
  ssl_min_protocol_version: ['TLSv1', 'TLSv1.1', 'TLSv1.2'],
  ssl_max_protocol_version: ['TLSv1.3'],
  load_balance_hosts: ['disable'],
  replication: ['false', 'off', 'no', '0'],
}

/** Parameters of libpq's sockets and Kerberos tickets, which are ignored: nothing depends on them. */
const IGNORED = [
  'connect_timeout',
  'keepalives',
  'keepalives_idle',
  'keepalives_interval',
  'keepalives_count',
  'tcp_user_timeout',
  'fallback_application_name',
  'krbsrvname',
  'gsslib',
  'gssdelegation',
  'sslcompression',
  'sslsni',
  'client_encoding',
  'pgbouncer',
]

const OWN = ['host', 'port', 'user', 'password', 'dbname', 'target_session_attrs', ...TLS_PARAMETERS]

/** @throws AddressError */
export function readAddress(parameters: Parameters): Address {
  const get = (name: string) => parameters.get(name)?.value
  for (const [name, harmless] of Object.entries(UNSUPPORTED)) {
    const found = parameters.get(name)
    if (found && !harmless.includes(found.value))
      throw new AddressError(`${called(name, found.source)} is not supported: leave it out`)
  }
  const user = get('user') ?? accountName()
  const servers = parameters.get('target_session_attrs')
  if (servers && !SERVERS.includes(servers.value))
    throw new AddressError(`${called('target_session_attrs', servers.source)}: expected ${SERVERS.join(', ')}`)
  const { host, port, path } = readHosts(parameters)
  const password = get('password') ?? ''
  const settings = [...parameters].filter(
    ([name]) => !OWN.includes(name) && !IGNORED.includes(name) && !(name in UNSUPPORTED),
  )
  const tls = readTls(parameters, (name, source, rule) => new AddressError(`${called(name, source)}: ${rule}`))
  return {
    host,
    port,
    ...(path === undefined ? {} : { path }),
    user,
    password: () => password,
    database: get('dbname') ?? user,
    // As in libpq: nobody can listen in on a unix socket.
    tls: path === undefined ? tls : { ...tls, mode: 'disable' },
    settings: Object.fromEntries(settings.map(([name, { value }]) => [name, value])),
    ...(servers && servers.value !== 'any' ? { target_session_attrs: servers.value } : {}),
  }
}

function readHosts(parameters: Parameters): { host: string[]; port: number[]; path?: string } {
  const hosts = parameters.get('host')?.value ?? 'localhost'
  // The name of a folder may have a comma.
  const host = hosts.startsWith('/') ? [hosts] : hosts.split(',').map((name) => name || 'localhost')
  const ports = parameters.get('port')
  const written = ports?.value.split(',') ?? ['']
  if (written.length !== 1 && written.length !== host.length)
    throw new AddressError(`${called('port', ports!.source)}: expected one port, or as many as hosts`)
  const port = host.map((_, at) => Number(written[written.length === 1 ? 0 : at] || DEFAULT_PORT))
  if (!port.every((number) => Number.isInteger(number) && number > 0 && number <= 65_535))
    throw new AddressError(`${called('port', ports!.source)}: expected a number from 1 to 65535`)
  const folder = host.find((name) => name.startsWith('/'))
  if (folder === undefined) return { host, port }
  if (host.length > 1)
    throw new AddressError(`${called('host', parameters.get('host')!.source)}: a unix socket must be the only host`)
  return { host, port, path: `${folder}/.s.PGSQL.${port[0]}` }
}

/** The parameters of libpq's variables; blank ones are left out. */
export function environmentParameters(env: NodeJS.ProcessEnv): Parameters {
  const found: Parameters = new Map()
  for (const [name, variable] of Object.entries(VARIABLES)) {
    const value = env[variable]?.trim()
    // A password may begin or end with a blank.
    if (value) found.set(name, { value: name === 'password' ? env[variable]! : value, source: variable })
  }
  return found
}

/**
 * The parameters of a URL: `postgres://user:password@host:port/database?name=value`, with commas between several hosts,
 * an IPv6 address in brackets, the folder of a unix socket percent-encoded in place of the host or as `?host=`. The
 * query takes precedence.
 * @throws AddressError
 */
export function urlParameters(url: string, source: string): Parameters {
  const fault = (rule: string) => new AddressError(`${source}: ${rule}`)
  const parts = /^postgres(?:ql)?:\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?(#.*)?$/s.exec(url)
  if (parts === null) throw fault('expected postgres://user:password@host:port/database')
  const [, authority = '', path = '', query = '', fragment] = parts
  if (fragment !== undefined) throw fault(encode('#', '%23'))
  const pairs = query.split('&').filter((pair) => pair !== '')
  const isSplit = path === '' && !authority.includes('@') && query.includes('@')
  if (isSplit || pairs.some((pair) => !/^\w[\w.]*=/.test(pair))) throw fault(encode('?', '%3F'))
  if (path.includes('@')) throw fault(`${encode('/', '%2F')}, and an \`@\` in the name of the database as \`%40\``)

  const decoded = (text: string) => {
    try {
      return decodeURIComponent(text)
    } catch {
      throw fault(encode('%', '%25'))
    }
  }
  // The last one: an unescaped `@` in a password does not begin a host.
  const at = authority.lastIndexOf('@')
  const [, user = '', password = ''] = /^([^:]*):?(.*)$/s.exec(authority.slice(0, Math.max(at, 0)))!
  const servers = authority
    .slice(at + 1)
    .split(',')
    .map((server) => /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d*))?$/.exec(server))
  if (servers.includes(null)) throw fault('expected hosts as name:port or [IPv6]:port, with commas between')
  const hosts = servers.map((server) => decoded(server![1] ?? server![2] ?? ''))
  const ports = servers.map((server) => server![3] ?? '')

  const found: Parameters = new Map()
  const set = (name: string, value: string) => {
    if (value !== '') found.set(name, { value, source })
  }
  set('user', decoded(user))
  set('password', decoded(password))
  set('dbname', decoded(path.slice(1)))
  if (hosts.some((host) => host !== '')) set('host', hosts.join(','))
  if (ports.some((port) => port !== '')) set('port', ports.join(','))
  for (const pair of pairs) {
    const [, name, value] = /^([^=]*)=(.*)$/s.exec(pair)!
    // The spelling of JDBC and of the driver.
    if (name === 'ssl') set('sslmode', { true: 'require', false: 'disable' }[value!] ?? decoded(value!))
    else set(name!, decoded(value!))
  }
  return found
}

/** The variable, or the parameter of the URL. */
export function called(name: string, source: string): string {
  return VARIABLES[name] === source ? source : `${source}: \`${name}\``
}

const encode = (char: string, code: string) =>
  `write a \`${char}\` in the user or password percent-encoded, as \`${code}\``

function accountName(): string {
  try {
    return userInfo().username
  } catch {
    return process.env.USER ?? 'postgres'
  }
}
