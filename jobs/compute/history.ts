/** Shared by the jobs of the compute history. */
import type { Sql } from '../../lib/db/index.ts'
import type { JobContext } from '../job.ts'

/** The tables of the history, partitioned by day. */
export const HISTORY = ['compute_minute', 'compute_folded', 'compute_contention', 'compute_usage'] as const
export type History = (typeof HISTORY)[number]

/** The first day that is retained. */
export const historyFrom = (sql: Sql, { config }: Pick<JobContext, 'config'>) => sql`
    (now() at time zone 'utc' - make_interval(days => ${config.computeHistoryRetentionDays}))::date`
