import { classify, DatabaseBusy, DatabaseUnavailable } from '../errors.ts'
import { greeted } from './greeting.ts'
import { openPool, type SocketOptions } from './socket-url.ts'

/** Whether the server answers a statement; anything but a database that is unavailable or busy is thrown. */
export async function accepts(server: SocketOptions): Promise<boolean> {
  const sql = openPool({ ...server }, { max: 1, fetch_types: false, prepare: false, connect_timeout: 0, onnotice: () => {} })
  try {
    await greeted(sql`select 1`)
    return true
  } catch (error) {
    const problem = classify(error)
    if (problem instanceof DatabaseUnavailable || problem instanceof DatabaseBusy) return false
    throw problem
  } finally {
    await sql.end({ timeout: 1 })
  }
}
