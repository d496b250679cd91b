import { type Database, fixed } from '../../db/index.ts'
import type { Log } from '../../observability/log.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { DenialInlet } from './inlet.ts'
import { repeat } from './repeat.ts'

// From workload to workload: each has many rows. Of two columns together no statistics say that they are null, as they do of each where all rows were
// once of no workload: the planner would then sort what it takes for a single row.
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

/** How many workloads have denials that are stored. */
export async function countWorkloads(db: Database): Promise<number> {
  const [row] = await db.job((sql) => COUNT(sql))
  return row!.workloads
}

/**
 * Counts the workloads that have denials, at once and then again and again, never twice at a time. What is not known stays as it was.
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

/** Has denials counted that were attributed since they came, whoever attributed them: another replica, or a job of its own process. */
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
