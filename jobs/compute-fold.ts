import { DatabaseBusy, type Sql } from '../lib/db/index.ts'
import { historyFrom } from './compute/history.ts'
import { type Batch, inRestedBatches, inSequence, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'

const FIRST_AFTER_SECS = 90
/** Buckets of five minutes that a pass rolls up; a step may exceed it by at most one hour. */
const MAX_BUCKETS = 120
const MAX_LATE_BATCHES = 200
/**
 * A million minutes take ten seconds of a core. A step rolls up at least five minutes, however many rows these have.
 */
const MINUTES_AT_ONCE = 400_000
const LATE_AT_ONCE = 20_000
/** Hours of which all containers are counted in one statement, unless that takes too long. */
const MAX_COUNTED_HOURS = 120
const COUNTED_SECS = 3_600
/** A minute usually arrives at once; reads take the minutes of the last one or two hours one by one. */
const COUNT_AFTER_HOURS = 1
const STATEMENT_TIMEOUT = '57014'

/** Minutes before this time are rolled up: full hours older than `computeHistoryMinuteHours`. */
const rollupEnd = (sql: Sql, { config }: Pick<JobContext, 'config'>) => sql`
    date_trunc('hour', now() at time zone 'utc' - make_interval(hours => ${config.computeHistoryMinuteHours}))`

/** Minutes before this time are counted by value: full hours. */
const countEnd = (sql: Sql) => sql`
    date_trunc('hour', now() at time zone 'utc' - make_interval(hours => ${COUNT_AFTER_HOURS}))`

/** Makes minutes before that time late for counting from now on; false if that failed. */
async function closeCount(context: JobContext): Promise<boolean> {
  const [row] = await context.db.job(
    (sql) => sql<{ is_closed: boolean | null }[]>`
  with ${held(sql, 'compute-fold')}
  select c.is_closed from held h left join lateral compute_close_count(case when h.is_held
                                                                       then ${countEnd(sql)} end) c(is_closed) on true`,
  )
  return row!.is_closed !== false
}

async function countMinutes(context: JobContext): Promise<Pass> {
  let secs = COUNTED_SECS
  return inRestedBatches(context.signal, MAX_COUNTED_HOURS, async () => {
    try {
      const [step] = await context.db.job(
        (sql) => sql<{ is_held: boolean; is_last: boolean | null }[]>`
  with ${held(sql, 'compute-fold')}
  select h.is_held, c.is_last
  from held h
  left join lateral compute_count_step(case when h.is_held then ${historyFrom(sql, context)} end, ${countEnd(sql)},
                                       ${secs}) c on true`,
      )
      return { isHeld: step!.is_held, rows: 0, isLast: step!.is_last ?? false }
    } catch (error) {
      // A slow machine counts in smaller steps.
      if (!(error instanceof DatabaseBusy && error.code === STATEMENT_TIMEOUT) || secs === 1) throw error
      secs = Math.max(1, Math.floor(secs / 4))
      return { isHeld: true, rows: 0, isLast: false }
    }
  })
}

const countLate = (context: JobContext): Promise<Pass> =>
  inRestedBatches(context.signal, MAX_LATE_BATCHES, async () => {
    const [step] = await context.db.job(
      (sql) => sql<{ is_held: boolean; is_last: boolean | null }[]>`
  with ${held(sql, 'compute-fold')}
  select h.is_held, c.is_last
  from held h
  left join lateral compute_count_late_step(case when h.is_held then ${historyFrom(sql, context)} end,
                                            ${LATE_AT_ONCE}) c on true`,
    )
    return { isHeld: step!.is_held, rows: 0, isLast: step!.is_last ?? false }
  })

/** Marks minutes before that time as late from now on; false if that failed, and none of them may be rolled up. */
async function close(context: JobContext): Promise<boolean> {
  const [row] = await context.db.job(
    (sql) => sql<{ is_closed: boolean | null }[]>`
  with ${held(sql, 'compute-fold')}
  select c.is_closed from held h left join lateral compute_close(case when h.is_held
                                                                 then ${rollupEnd(sql, context)} end) c(is_closed)
                                                                   on true`,
  )
  return row!.is_closed !== false
}

async function rollUp(context: JobContext): Promise<Pass> {
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
  left join lateral compute_rollup_step(case when h.is_held then ${historyFrom(sql, context)} end,
                                        ${rollupEnd(sql, context)}, ${minutesAtOnce}) f on true`,
      )
      buckets += step!.buckets ?? 0
      isDone = step!.is_last ?? false
      return { isHeld: step!.is_held, rows: step!.rows ?? 0, isLast: isDone || buckets >= MAX_BUCKETS }
    } catch (error) {
      // A slow machine rolls up in smaller steps.
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
  left join lateral compute_merge_step(case when h.is_held then ${historyFrom(sql, context)} end,
                                       ${rollupEnd(sql, context)}, ${LATE_AT_ONCE}) m on true`,
    )
    return { isHeld: step!.is_held, rows: step!.rows ?? 0, isLast: step!.is_last ?? false }
  })

/**
 * Counts minutes by value (docs/contract.md#sizing-of-workloads), then rolls up old minutes into rows of five minutes,
 * and merges minutes that came late (docs/contract.md#compute). One statement rolls up or counts, and moves the line
 * that tells readers how far, so each minute counts once, whatever process fails at whatever moment. A minute that
 * arrives when its hour is closed is late, and is read as a minute until it is merged.
 */
export const computeFold: Job = {
  name: 'compute-fold',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => (config.computeHistoryRetentionDays === 0 ? null : config.computeRetentionIntervalSecs),

  async run(context) {
    if (!(await closeCount(context)) || !(await close(context)))
      context.log.warn(
        { job: 'compute-fold' },
        'posts of history delay the rollup: this pass covers only what was closed before',
      )
    return inSequence([
      () => countMinutes(context),
      () => countLate(context),
      () => rollUp(context),
      () => mergeLate(context),
    ])
  },

  async count(context) {
    const [row] = await context.db.job(
      (sql) => sql<{ rows: number }[]>`
  select ((select count(*) from compute_minute m
           where m.ts >= greatest(f.folded_until, ${historyFrom(sql, context)}) and m.ts < ${rollupEnd(sql, context)}
                 and not m.is_late)
          + (select count(*) from compute_minute m
             where m.is_late and m.ts >= ${historyFrom(sql, context)}
                   and m.ts < ${rollupEnd(sql, context)}))::int as rows
  from compute_fold f`,
    )
    return row!.rows
  },
}
