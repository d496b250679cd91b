/**
 * What the jobs of the history share. Their work is in functions of the database, which are strict: a batch without its lock calls them with a
 * null for the first argument. A condition beside the call would be looked at only after it.
 */
import type { Sql } from '../../lib/db/index.ts'
import type { JobContext } from '../job.ts'

/** The tables of the history, each with a partition a day. */
export const HISTORY = ['compute_minute', 'compute_folded', 'compute_contention'] as const
export type History = (typeof HISTORY)[number]

/** The first day that is kept. */
export const historyFrom = (sql: Sql, { config }: Pick<JobContext, 'config'>) => sql`
    (now() at time zone 'utc' - make_interval(days => ${config.computeHistoryRetentionDays}))::date`
