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

type Row = { is_held: boolean; rows: number }

async function removeContainers(context: JobContext): Promise<Batch> {
  const max = context.config.imageInventoryBatchSize
  const [batch] = await context.db.probe(
    (sql) => sql<Row[]>`
  with ${held(sql, 'image-inventory-retention')},
  expired as materialized (
    select w.ctid as place
    from workload_container w
    where (select is_held from held) and ${isExpired(sql, context)}
    order by w.last_seen
    limit ${max}
    for update skip locked),
  removed as (delete from workload_container w using expired e where w.ctid = e.place returning 1)
  select h.is_held, (select count(*)::int from removed) as rows from held h`,
  )
  return { isHeld: batch!.is_held, rows: batch!.rows, isLast: batch!.rows < max }
}

async function removeImages(context: JobContext): Promise<Batch> {
  const max = context.config.imageInventoryBatchSize
  const [batch] = await context.db.probe(
    (sql) => sql<Row[]>`
  with ${held(sql, 'image-inventory-retention')},
  unused as materialized (
    select m.ctid as place
    from image m
    where (select is_held from held) and ${isBefore(sql, sql`m.last_seen`, context)}
      and not exists (select from workload_container w where w.image_digest = m.digest)
    order by m.digest
    limit ${max}
    for update of m skip locked),
  removed as (delete from image m using unused u where m.ctid = u.place returning 1)
  select h.is_held, (select count(*)::int from removed) as rows from held h`,
  )
  return { isHeld: batch!.is_held, rows: batch!.rows, isLast: batch!.rows < max }
}

/**
 * Forgets containers that were not reported for the window of days and do not run, then images that no container has had for as long
 * (interop-core 7.5, 9.5 and D17). A row that is being written at that moment is passed over: it is in use.
 */
export const imageInventoryRetention: Job = {
  name: 'image-inventory-retention',
  everySecs: (config) => (config.imageInventoryRetentionDays === 0 ? null : config.imageInventoryIntervalSecs),

  run(context) {
    let remove = removeContainers
    return inRestedBatches(context.signal, MAX_BATCHES, async () => {
      const batch = await remove(context)
      if (remove === removeImages || !batch.isHeld || !batch.isLast) return batch
      remove = removeImages
      return { ...batch, isLast: false }
    })
  },

  async count(context) {
    const [row] = await context.db.probe(
      (sql) => sql<{ rows: number }[]>`
  select (select count(*)::int from workload_container w where ${isExpired(sql, context)})
       + (select count(*)::int from image m
          where ${isBefore(sql, sql`m.last_seen`, context)}
            and not exists (select from workload_container w where w.image_digest = m.digest and not (${isExpired(sql, context)}))) as rows`,
    )
    return row!.rows
  },
}
