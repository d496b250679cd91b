import { greeted } from './greeting.ts'
import { openPool, type SocketOptions } from './socket-url.ts'

// Connections of this name never count as clients, so that two processes that leave together do not wait for each other.
const APPLICATION_NAME = 'broker-embedded-probe'

// No socket, no listener, a connection cut short, or the server's own admin_shutdown and cannot_connect_now.
const GOING_DOWN = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'CONNECTION_CLOSED', '57P01', '57P03'])

/** Whether the server answers a statement. */
export async function accepts(server: SocketOptions): Promise<boolean> {
  try {
    await probe(server, (sql) => sql`select 1`)
    return true
  } catch {
    return false
  }
}

/** The number of client connections, probes not counted: 0 for a server that is going down, and all when it is full. */
export async function countClients(server: SocketOptions): Promise<number> {
  try {
    const [row] = await probe(
      server,
      (sql) => sql<{ clients: number }[]>`
        select count(*)::int as clients
        from pg_stat_activity
        where backend_type = 'client backend' and application_name <> ${APPLICATION_NAME}`,
    )
    return row?.clients ?? 0
  } catch (error) {
    return GOING_DOWN.has(String((error as { code?: unknown }).code)) ? 0 : Number.POSITIVE_INFINITY
  }
}

async function probe<T>(server: SocketOptions, run: (sql: ReturnType<typeof openPool>) => Promise<T>): Promise<T> {
  const sql = openPool(
    { ...server },
    {
      max: 1,
      fetch_types: false,
      prepare: false,
      connect_timeout: 0,
      onnotice: () => {},
      connection: { application_name: APPLICATION_NAME },
    },
  )
  try {
    return await greeted(run(sql))
  } finally {
    await sql.end({ timeout: 1 })
  }
}
