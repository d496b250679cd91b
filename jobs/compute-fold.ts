import { DatabaseBusy, type Sql } from '../lib/db/index.ts'
import { historyFrom } from './compute/history.ts'
import { type Batch, inRestedBatches, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'

const FIRST_AFTER_SECS = 90
/** Buckets of five minutes that a pass folds, and one hour more at most. */
const MAX_BUCKETS = 120
const MAX_LATE_BATCHES = 200
/** A million are ten seconds of a core; five minutes are folded at least, however many minutes these have. */
const MINUTES_AT_ONCE = 400_000
const LATE_AT_ONCE = 20_000
const STATEMENT_TIMEOUT = '57014'

/** Minutes before it are folded: those of the hour that the oldest one by the minute is in are not. */
const foldedTo = (sql: Sql, { config }: Pick<JobContext, 'config'>) => sql`
    date_trunc('hour', now() at time zone 'utc' - make_interval(hours => ${config.computeHistoryMinuteHours}))`

/** Whether minutes before that time are marked as late from now on: until then none may be folded. */
async function close(context: JobContext): Promise<boolean> {
  const [row] = await context.db.job(
    (sql) => sql<{ is_closed: boolean | null }[]>`
  with ${held(sql, 'compute-fold')}
  select c.is_closed from held h left join lateral compute_close(case when h.is_held then ${foldedTo(sql, context)} end) c(is_closed) on true`,
  )
  return row!.is_closed !== false
}

async function fold(context: JobContext): Promise<Pass> {
  let minutesAtOnce = MINUTES_AT_ONCE
  let buckets = 0
  let isDone = false
  const pass = await inRestedBatches(context.signal, MAX_BUCKETS, async (): Promise<Batch> => {
    try {
      const [step] = await context.db.job(
        (sql) => sql<{ is_held: boolean; rows: number | null; buckets: number | null; is_last: boolean | null }[]>`
  with ${held(sql, 'compute-fold')}
  select h.is_held, f.minutes::int as rows, f.buckets, f.is_last
  from held h
  left join lateral compute_rollup_step(case when h.is_held then ${historyFrom(sql, context)} end, ${foldedTo(sql, context)}, ${minutesAtOnce}) f on true`,
      )
      buckets += step!.buckets ?? 0
      isDone = step!.is_last ?? false
      return { isHeld: step!.is_held, rows: step!.rows ?? 0, isLast: isDone || buckets >= MAX_BUCKETS }
    } catch (error) {
      // A slow machine folds in smaller steps.
      if (!(error instanceof DatabaseBusy && error.code === STATEMENT_TIMEOUT) || minutesAtOnce === 1) throw error
      minutesAtOnce = minutesAtOnce > 100_000 ? Math.floor(minutesAtOnce / 4) : 1
      return { isHeld: true, rows: 0, isLast: false }
    }
  })
  return pass.outcome === 'done' && !isDone ? { ...pass, outcome: 'capped' } : pass
}

const mergeLate = (context: JobContext): Promise<Pass> =>
  inRestedBatches(context.signal, MAX_LATE_BATCHES, async () => {
    const [step] = await context.db.job(
      (sql) => sql<{ is_held: boolean; rows: number | null; is_last: boolean | null }[]>`
  with ${held(sql, 'compute-fold')}
  select h.is_held, m.minutes::int as rows, m.is_last
  from held h
  left join lateral compute_merge_step(case when h.is_held then ${historyFrom(sql, context)} end, ${foldedTo(sql, context)}, ${LATE_AT_ONCE}) m on true`,
    )
    return { isHeld: step!.is_held, rows: step!.rows ?? 0, isLast: step!.is_last ?? false }
  })

/**
 * Folds minutes that are old enough into rows of five minutes, and merges those that came late (interop-profiling 3.5, P36). A statement folds
 * and moves the line that tells readers what is folded, so each minute counts once, whoever dies at whatever moment. A minute that comes
 * while its hour is being folded is late, and is read as a minute until it is merged.
 */
export const computeFold: Job = {
  name: 'compute-fold',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => (config.computeHistoryRetentionDays === 0 ? null : config.computeRetentionIntervalSecs),

  async run(context) {
    if (!(await close(context)))
      context.log.warn({ job: 'compute-fold' }, 'posts of history kept the fold waiting; it folds what it could before')
    const folded = await fold(context)
    if (folded.outcome === 'skipped' || folded.outcome === 'aborted') return folded
    const merged = await mergeLate(context)
    return {
      outcome: merged.outcome === 'done' ? folded.outcome : merged.outcome,
      rows: folded.rows + merged.rows,
      batches: folded.batches + merged.batches,
    }
  },

  async count(context) {
    const [row] = await context.db.job(
      (sql) => sql<{ rows: number }[]>`
  select ((select count(*) from compute_minute m
           where m.ts >= greatest(f.folded_until, ${historyFrom(sql, context)}) and m.ts < ${foldedTo(sql, context)} and not m.is_late)
          + (select count(*) from compute_minute m
             where m.is_late and m.ts >= ${historyFrom(sql, context)} and m.ts < ${foldedTo(sql, context)}))::int as rows
  from compute_fold f`,
    )
    return row!.rows
  },
}
