import type postgres from 'postgres'
import { until } from './until.ts'

/**
 * Waits until the transactions that run now in other databases have ended. A snapshot counts them too, so that a reader
 * that stops at the oldest running transaction stops earlier while other test files run on the same server.
 */
export async function othersEnded(sql: postgres.Sql): Promise<void> {
  const running = () => sql<{ id: string }[]>`
    select pid || ':' || backend_xid as id from pg_stat_activity
    where datname is distinct from current_database() and backend_xid is not null`
  const ids = new Set((await running()).map(({ id }) => id))
  await until('the transactions of other databases end', async () => !(await running()).some(({ id }) => ids.has(id)))
}
