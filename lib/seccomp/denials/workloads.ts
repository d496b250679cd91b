import { type Database, fixed } from '../../db/index.ts'
import type { Metrics } from '../../metrics/index.ts'
import type { Log } from '../../observability/log.ts'
import { repeat } from '../../time/repeat.ts'
import type { DenialInlet } from './inlet.ts'

// Jumps from workload to workload in the index, because each has many rows. The concatenated columns have no statistics
// about nulls. With a condition on each column, statistics from a time when no row had a workload make the planner
// expect a single row and sort all of them.
const COUNT = fixed<{ workloads: number }[]>(`
  with recursive found as (
    (select d.pod_namespace, d.workload_kind, d.workload_name
     from seccomp_denial d
     where (d.workload_kind || d.workload_name) is not null
     order by d.pod_namespace, d.workload_kind, d.workload_name
     limit 1)
    union all
    select n.*
    from found f
    cross join lateral (
      select d.pod_namespace, d.workload_kind, d.workload_name
      from seccomp_denial d
      where (d.workload_kind || d.workload_name) is not null
        and (d.pod_namespace, d.workload_kind, d.workload_name) > (f.pod_namespace, f.workload_kind, f.workload_name)
      order by d.pod_namespace, d.workload_kind, d.workload_name
      limit 1) n)
  select count(*)::integer as workloads from found`)

/** The number of workloads that have stored denials. */
export async function countWorkloads(db: Database): Promise<number> {
  const [row] = await db.job((sql) => COUNT(sql))
  return row!.workloads
}

/**
 * Counts the workloads with denials now and then repeatedly, never twice at a time. After a failure the gauge keeps its
 * value.
 */
export function watchDenialWorkloads(options: { db: Database; metrics: Metrics; log: Log; everyMs: number }): {
  stop(): void
} {
  const { db, metrics, log, everyMs } = options
  return repeat(
    async () => metrics.denialWorkloads.set(await countWorkloads(db)),
    everyMs,
    (error) => log.debug({ err: error }, 'how many workloads have seccomp denials is not known'),
  )
}

/**
 * Counts denials that were attributed after they arrived, by any process: another replica, or a job in a process of its
 * own.
 */
export function watchAttributed(options: {
  denials: Pick<DenialInlet, 'countAttributed'>
  log: Log
  everyMs: number
}): { stop(): void } {
  const { denials, log, everyMs } = options
  return repeat(
    () => denials.countAttributed(),
    everyMs,
    (error) => log.debug({ err: error }, 'seccomp denials that were attributed are counted later'),
  )
}
