import postgres from 'postgres'

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

/**
 * A driver pool on any connection this service accepts. The driver alone cannot read a unix socket out of a URL; here
 * both libpq forms work: `postgresql://user@%2Ffolder:5432/db` and `postgresql://user@/db?host=/folder`.
 */
export function openPool<T extends Record<string, postgres.PostgresType>>(
  connection: string | postgres.Options<T>,
  options: postgres.Options<T> = {},
): postgres.Sql {
  if (typeof connection !== 'string') return postgres({ ...connection, ...options }) as postgres.Sql
  const { url, host } = splitSocket(connection)
  return postgres(url, host === undefined ? options : { host, ...options }) as postgres.Sql
}

function splitSocket(connection: string): { url: string; host?: string } {
  if (!/(@|:\/\/)%2f|[?&]host=(%2f|\/)/i.test(connection)) return { url: connection }
  // An empty host with a user is libpq's spelling, not a URL's.
  const url = new URL(connection.replace(/^(\w+:\/\/[^/?@]*@)([/?])/, '$1localhost$2'))
  const host = url.searchParams.get('host') ?? decodeURIComponent(url.hostname)
  if (!host.startsWith('/')) return { url: connection }
  url.searchParams.delete('host')
  url.hostname = 'localhost'
  return { url: url.href, host }
}
