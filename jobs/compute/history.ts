/** Shared by the jobs of the compute history. */
import { DatabaseBusy, type Sql } from '../../lib/db/index.ts'
import type { Batch, JobContext } from '../job.ts'

/** The tables of the history, partitioned by day. */
export const HISTORY = [
  ...(['compute_minute', 'compute_minute_pack', 'compute_folded', 'compute_folded_pack'] as const),
  ...(['compute_contention', 'compute_contention_kept', 'compute_usage'] as const),
] as const
export type History = (typeof HISTORY)[number]

/** The first day that is retained. */
export const historyFrom = (sql: Sql, { config }: Pick<JobContext, 'config'>) => sql`
    (now() at time zone 'utc' - make_interval(days => ${config.computeHistoryRetentionDays}))::date`

/** A minute usually arrives at once; reads take those of the last one or two hours one by one. */
const COUNT_AFTER_HOURS = 1

/** Minutes before this time are counted by value and packed, waits are moved: full hours. */
export const countEnd = (sql: Sql) => sql`
    date_trunc('hour', now() at time zone 'utc' - make_interval(hours => ${COUNT_AFTER_HOURS}))`

const STATEMENT_TIMEOUT = '57014'

/** A step of `size`; on a slow machine, where a statement takes too long, the next steps are smaller. */
export function shrinking(largest: number, step: (size: number) => Promise<Batch>): () => Promise<Batch> {
  let size = largest
  return async () => {
    try {
      return await step(size)
    } catch (error) {
      if (!(error instanceof DatabaseBusy && error.code === STATEMENT_TIMEOUT) || size === 1) throw error
      size = Math.max(1, Math.floor(size / 4))
      return { isHeld: true, rows: 0, isLast: false }
    }
  }
}
