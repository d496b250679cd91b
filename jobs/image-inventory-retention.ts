import type { Sql } from '../lib/db/index.ts'
import { type Batch, inRestedBatches, type Job, type JobContext } from './job.ts'
import { held } from './locks.ts'

const MAX_BATCHES = 200

const isBefore = (sql: Sql, time: ReturnType<Sql>, { config }: Pick<JobContext, 'config'>) => sql`
    ${time} < now() at time zone 'utc' - make_interval(days => ${config.imageInventoryRetentionDays})`

/** Of a container `w`: its age has expired, and it does not run (interop-core D17 and 9.4). */
const isExpired = (sql: Sql, context: Pick<JobContext, 'config'>) => sql`
    ${isBefore(sql, sql`w.last_seen`, context)}
    and (w.ref_seen_at is null or ${isBefore(sql, sql`w.ref_seen_at`, context)})
    and not is_running(w, ${context.config.imageRunningWindowSecs})`

/** One batch: deletes from `table` what `doomed` selects the places of, under its lock and limit. */
async function remove(
  { config, db }: JobContext,
  table: string,
  doomed: (sql: Sql) => ReturnType<Sql>,
): Promise<Batch> {
  const max = config.imageInventoryBatchSize
  const [batch] = await db.job(
    (sql) => sql<{ is_held: boolean; rows: number }[]>`
  with ${held(sql, 'image-inventory-retention')},
  doomed as materialized (
    ${doomed(sql)}
    limit ${max}
    for update skip locked),
  removed as (delete from ${sql(table)} t using doomed d where t.ctid = d.place returning 1)
  select h.is_held, (select count(*)::int from removed) as rows from held h`,
  )
  return { isHeld: batch!.is_held, rows: batch!.rows, isLast: batch!.rows < max }
}

const removeContainers = (context: JobContext): Promise<Batch> =>
  remove(
    context,
    'workload_container',
    (sql) => sql`
    select w.ctid as place
    from workload_container w
    where (select is_held from held) and ${isExpired(sql, context)}
    order by w.last_seen`,
  )

const removeImages = (context: JobContext): Promise<Batch> =>
  remove(
    context,
    'image',
    (sql) => sql`
    select m.ctid as place
    from image m
    where (select is_held from held) and ${isBefore(sql, sql`m.last_seen`, context)}
      and not exists (select from workload_container w where w.image_digest = m.digest)
    order by m.digest`,
  )

/**
 * Forgets containers that were not reported for the window of days and do not run, then images that no container has had for as long
 * (interop-core 7.5, 9.5 and D17). A row that is being written at that moment is passed over: it is in use.
 */
export const imageInventoryRetention: Job = {
  name: 'image-inventory-retention',
  everySecs: (config) => (config.imageInventoryRetentionDays === 0 ? null : config.imageInventoryIntervalSecs),

  run(context) {
    let removeSome = removeContainers
    return inRestedBatches(context.signal, MAX_BATCHES, async () => {
      const batch = await removeSome(context)
      if (removeSome === removeImages || !batch.isHeld || !batch.isLast) return batch
      removeSome = removeImages
      return { ...batch, isLast: false }
    })
  },

  async count(context) {
    const [row] = await context.db.job(
      (sql) => sql<{ rows: number }[]>`
  select (select count(*)::int from workload_container w where ${isExpired(sql, context)})
       + (select count(*)::int from image m
          where ${isBefore(sql, sql`m.last_seen`, context)}
            and not exists (select from workload_container w where w.image_digest = m.digest and not (${isExpired(sql, context)}))) as rows`,
    )
    return row!.rows
  },
}
