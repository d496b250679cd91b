/**
 * Where the database is and how to get in: a connection URL, and behind it libpq's variables for what the URL leaves unsaid
 * (PostgreSQL 18, 32.1.1 and 32.15). The driver's own reading of both is not used: it knows no IPv6 address, no folder of a
 * socket, takes the modes of TLS for one another, and what it does not know it sends to the server.
 */
import { userInfo } from 'node:os'
import { readTls, TLS_PARAMETERS, type TlsSettings } from './tls-settings.ts'

/** The URL or a variable cannot be used. The message names where it stands and no value of it. */
export class AddressError extends Error {
  override readonly name = 'AddressError'
}

/** What the driver is told of a server; every field it would else look for in the environment is there. */
export interface Address {
  host: string[]
  port: number[]
  /** Unix socket; goes before hosts. */
  path?: string
  user: string
  /** Asked for each connection. Must not throw. */
  password: () => string
  database: string
  tls: TlsSettings
  /** Session settings that the URL asks for. */
  settings: Record<string, string>
  target_session_attrs?: string
}

/** A value by libpq's keyword, and where it stands. */
export type Parameters = Map<string, { value: string; source: string }>

const DEFAULT_PORT = 5432
const SERVERS = ['read-write', 'read-only', 'primary', 'standby', 'prefer-standby', 'any']

/** Of libpq's variables those that count, by keyword. */
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

/** What cannot be done here and would be missed, with the values that ask for nothing. */
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

/** What libpq does with its sockets and tickets; nothing depends on it. */
const IGNORED = [
  ...[
    'connect_timeout',
    'keepalives',
    'keepalives_idle',
    'keepalives_interval',
    'keepalives_count',
    'tcp_user_timeout',
  ],
  ...[
    'fallback_application_name',
    'krbsrvname',
    'gsslib',
    'gssdelegation',
    'sslcompression',
    'sslsni',
    'client_encoding',
    'pgbouncer',
  ],
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
    // As with libpq: nobody listens in on a unix socket.
    tls: path === undefined ? tls : { ...tls, mode: 'disable' },
    settings: Object.fromEntries(settings.map(([name, { value }]) => [name, value])),
    ...(servers && servers.value !== 'any' ? { target_session_attrs: servers.value } : {}),
  }
}

function readHosts(parameters: Parameters): { host: string[]; port: number[]; path?: string } {
  const hosts = parameters.get('host')?.value ?? 'localhost'
  // A folder may have a comma in its name.
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

/** What libpq's variables say, blank ones not at all. */
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
 * What a URL says: `postgres://user:password@host:port/database?name=value`, several hosts with commas between, an IPv6 address in
 * brackets, the folder of a unix socket percent-encoded in place of the host or as `?host=`. What stands in the query goes before.
 * @throws AddressError
 */
export function urlParameters(url: string, source: string): Parameters {
  const fault = (rule: string) => new AddressError(`${source}: ${rule}`)
  const parts = /^postgres(?:ql)?:\/\/([^/?#]*)(\/[^?#]*)?(?:\?([^#]*))?(#.*)?$/s.exec(url)
  if (parts === null) throw fault('expected postgres://user:password@host:port/database')
  const [, authority = '', path = '', query = '', fragment] = parts
  if (fragment !== undefined) throw fault(encode('#', '%23'))
  const pairs = query.split('&').filter((pair) => pair !== '')
  const isTorn = path === '' && !authority.includes('@') && query.includes('@')
  if (isTorn || pairs.some((pair) => !/^\w[\w.]*=/.test(pair))) throw fault(encode('?', '%3F'))
  if (path.includes('@')) throw fault(`${encode('/', '%2F')}, and an \`@\` in the name of the database as \`%40\``)

  const decoded = (text: string) => {
    try {
      return decodeURIComponent(text)
    } catch {
      throw fault(encode('%', '%25'))
    }
  }
  // The last one: whoever left an `@` in the password unescaped meant no host by it.
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
  const say = (name: string, value: string) => {
    if (value !== '') found.set(name, { value, source })
  }
  say('user', decoded(user))
  say('password', decoded(password))
  say('dbname', decoded(path.slice(1)))
  if (hosts.some((host) => host !== '')) say('host', hosts.join(','))
  if (ports.some((port) => port !== '')) say('port', ports.join(','))
  for (const pair of pairs) {
    const [, name, value] = /^([^=]*)=(.*)$/s.exec(pair)!
    // The spelling of JDBC, and the driver's.
    if (name === 'ssl') say('sslmode', { true: 'require', false: 'disable' }[value!] ?? decoded(value!))
    else say(name!, decoded(value!))
  }
  return found
}

/** The variable, or the place in the URL. */
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
