import { countEnd, historyFrom, shrinking } from './compute/history.ts'
import { countMinutesToPack, packHours } from './compute/packs.ts'
import { countWaits, keepWaits } from './compute/waits.ts'
import { inBatches, inRestedBatches, inSequence, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'

const FIRST_AFTER_SECS = 90
const MAX_LATE_BATCHES = 200
const LATE_AT_ONCE = 20_000
/** A pass packs an hour of 400 000 containers. */
const MAX_PACK_BATCHES = 8_000
/** Half of the time: with more rest, 100 000 containers would be packed more slowly than they post. */
const PACK_REST = 1
/** Hours of which all containers are counted in one statement, unless that takes too long. */
const MAX_COUNTED_HOURS = 120
const COUNTED_SECS = 3_600

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

const countMinutes = (context: JobContext): Promise<Pass> =>
  inRestedBatches(
    context.signal,
    MAX_COUNTED_HOURS,
    shrinking(COUNTED_SECS, async (secs) => {
      const [step] = await context.db.job(
        (sql) => sql<{ is_held: boolean; is_last: boolean | null }[]>`
  with ${held(sql, 'compute-fold')}
  select h.is_held, c.is_last
  from held h
  left join lateral compute_count_step(case when h.is_held then ${historyFrom(sql, context)} end, ${countEnd(sql)},
                                       ${secs}) c on true`,
      )
      return { isHeld: step!.is_held, rows: 0, isLast: step!.is_last ?? false }
    }),
  )

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

/**
 * Counts minutes by value (docs/contract.md#sizing-of-workloads), then packs what is counted, rolls up old packs
 * (docs/contract.md#compute), and moves waits. One statement counts and moves the line that tells readers how far, and
 * one replaces rows and packs by a pack, so each minute counts once, whatever process fails at whatever moment. A minute
 * that arrives when its hour is counted is read as a minute until it is packed, too.
 */
export const computeFold: Job = {
  name: 'compute-fold',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: (config) => (config.computeHistoryRetentionDays === 0 ? null : config.computeRetentionIntervalSecs),

  async run(context) {
    if (!(await closeCount(context)))
      context.log.warn(
        { job: 'compute-fold' },
        'posts of history delay the count: this pass covers only what was closed before',
      )
    return inSequence([
      () => countMinutes(context),
      () => countLate(context),
      () => inBatches(context.signal, MAX_PACK_BATCHES, packHours(context), PACK_REST),
      () => inBatches(context.signal, MAX_PACK_BATCHES, keepWaits(context), PACK_REST),
    ])
  },

  async count(context) {
    return (await countMinutesToPack(context)) + (await countWaits(context))
  },
}
