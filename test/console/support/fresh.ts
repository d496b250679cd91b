/** Repeats the regular posts of agents, so that seeded nodes and containers do not fall silent. */
import type postgres from 'postgres'

/**
 * Keeps nodes live that were live at the end of the seed. Flows, findings and history keep their times. `age` shifts
 * the newest times: at the first call it is the time since the seed.
 */
export async function freshen(sql: postgres.Sql): Promise<void> {
  const now = `now() at time zone 'utc'`
  const recently = (column: string, newest: string) => `${column} > (${newest}) - interval '10 minutes'`
  for (const [table, column, condition] of [
    ['pod', 'time_stamp', 'not is_dead'],
    ['workload_container', 'last_seen', "state is distinct from 'terminated'"],
    ['runtime_coverage', 'last_heartbeat', 'not ended'],
    ['compute_latest', 'updated_at', 'true'],
    ['compute_node', 'updated_at', 'true'],
    ['seccomp_node', 'updated_at', 'true'],
    ['seccomp_denial_node', 'updated_at', 'true'],
    ['job_run', 'finished_at', 'true'],
  ] as const)
    await sql.unsafe(`update ${table} set ${column} = ${now}
      where ${condition} and ${recently(column, `select max(${column}) from ${table}`)}`)
  await sql.unsafe(`update compute_latest set ts = ${now} where updated_at > ${now} - interval '1 minute'`)
  await sql.unsafe(`update compute_node set ts = ${now} where updated_at > ${now} - interval '1 minute'`)
  await sql.unsafe(`update flow_edge_cursor set as_of = ${now}, counted_at = ${now}`)
  await sql.unsafe(`update cve_summary_state set refreshed_at = ${now}, judged_until = ${now} + interval '1 day'`)
}
