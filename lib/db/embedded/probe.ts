import { greeted } from './greeting.ts'
import { openPool, type SocketOptions } from './socket-url.ts'

/** Whether the server answers a statement. */
export async function accepts(server: SocketOptions): Promise<boolean> {
  const sql = openPool({ ...server }, { max: 1, fetch_types: false, prepare: false, connect_timeout: 0, onnotice: () => {} })
  try {
    await greeted(sql`select 1`)
    return true
  } catch {
    return false
  } finally {
    await sql.end({ timeout: 1 })
  }
}
