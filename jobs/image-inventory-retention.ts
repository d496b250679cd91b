import type { Sql } from '../lib/db/index.ts'
import { type Batch, inRestedBatchesOf, type Job, type JobContext } from './job.ts'
import { held } from './locks.ts'

const MAX_BATCHES = 200

const isBefore = (sql: Sql, time: ReturnType<Sql>, { config }: Pick<JobContext, 'config'>) => sql`
    ${time} < now() at time zone 'utc' - make_interval(days => ${config.imageInventoryRetentionDays})`

/** Whether a container `w` is expired and does not run. */
const isExpired = (sql: Sql, context: Pick<JobContext, 'config'>) => sql`
    ${isBefore(sql, sql`w.last_seen`, context)}
    and (w.ref_seen_at is null or ${isBefore(sql, sql`w.ref_seen_at`, context)})
    and not is_running(w, ${context.config.imageRunningWindowSecs})`

/** Deletes one batch of `table`: the rows whose ctid `deletable` selects. */
async function remove(
  { config, db }: JobContext,
  table: string,
  deletable: (sql: Sql) => ReturnType<Sql>,
): Promise<Batch> {
  const max = config.imageInventoryBatchSize
  const [batch] = await db.job(
    (sql) => sql<{ is_held: boolean; rows: number }[]>`
  with ${held(sql, 'image-inventory-retention')},
  deletable as materialized (
    ${deletable(sql)}
    limit ${max}
    for update skip locked),
  removed as (delete from ${sql(table)} t using deletable d where t.ctid = d.place returning 1)
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
 * Deletes containers that were not reported for the retention days and do not run, then images that no container has
 * had for as long (docs/contract.md#retention). Rows locked by another session are skipped: they are in use.
 */
export const imageInventoryRetention: Job = {
  name: 'image-inventory-retention',
  everySecs: (config) => (config.imageInventoryRetentionDays === 0 ? null : config.imageInventoryIntervalSecs),

  run: (context) =>
    inRestedBatchesOf(context.signal, MAX_BATCHES, [() => removeContainers(context), () => removeImages(context)]),

  async count(context) {
    const [row] = await context.db.job(
      (sql) => sql<{ rows: number }[]>`
  select (select count(*)::int from workload_container w where ${isExpired(sql, context)})
       + (select count(*)::int from image m
          where ${isBefore(sql, sql`m.last_seen`, context)}
            and not exists (select from workload_container w where w.image_digest = m.digest
                            and not (${isExpired(sql, context)}))) as rows`,
    )
    return row!.rows
  },
}
