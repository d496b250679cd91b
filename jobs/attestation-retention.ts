import type { Sql } from '../lib/db/index.ts'
import { type Batch, inRestedBatches, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'

const HOUR_SECS = 3_600
const FIRST_AFTER_SECS = 180
/** Results that a statement deletes by their age, or compares with the inventory. */
const BATCH_ROWS = 5_000
/** Batches of a pass that delete by age. */
const MAX_BATCHES = 20
/** Batches of a pass that compare: a million results, more than any cluster has images. */
const MAX_COMPARED = 200

const isExpired = (sql: Sql, days: number) => sql`
    a.checked_at < now() at time zone 'utc' - make_interval(days => ${days})`

// Of "not exists" the planner would make a join, and read the whole inventory for each batch.
const hasLeft = (sql: Sql) => sql`
    (select 1 from image m where m.digest = a.digest limit 1) is null
    and (select 1 from workload_container w where w.image_digest = a.digest limit 1) is null`

/** Deletes what was not checked again for the days, the oldest first; of images that run, too. */
function removeExpired({ config, db, signal }: JobContext): Promise<Pass> {
  let after = '-infinity'
  return inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; found: number; rows: number; last: string | null }[]>`
  with ${held(sql, 'attestation-retention')},
  expired as materialized (
    select a.place, a.checked_at
    from (select a.ctid as place, a.checked_at
          from image_attestation a
          where a.checked_at >= (select ${after}::text::timestamp from held where is_held)
          order by a.checked_at
          limit ${BATCH_ROWS}) a
    where ${isExpired(sql, config.attestationRetentionDays)}),
  locked as materialized (
    select a.ctid as place
    from image_attestation a
    where a.ctid = any (array(select e.place from expired e)) and ${isExpired(sql, config.attestationRetentionDays)}
    for update skip locked),
  deleted as (
    delete from image_attestation a where a.ctid = any (array(select l.place from locked l)) returning 1)
  select h.is_held,
         (select count(*)::int from expired) as found,
         (select count(*)::int from deleted) as rows,
         (select max(e.checked_at)::text from expired e) as last
  from held h`,
    )
    const { is_held, found, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows, isLast: found < BATCH_ROWS }
  })
}

/** Deletes what is about images that have left the inventory: all results are looked at, in the order of their digests. */
function removeLeft({ db, signal }: JobContext): Promise<Pass> {
  let after = ''
  return inRestedBatches(signal, MAX_COMPARED, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; last: string | null }[]>`
  with ${held(sql, 'attestation-retention')},
  compared as materialized (
    select a.digest
    from image_attestation a
    where a.digest > (select ${after}::text collate "C" from held where is_held)
    order by a.digest
    limit ${BATCH_ROWS}),
  gone as materialized (select a.digest from compared a where ${hasLeft(sql)})
  select h.is_held,
         case when exists (select from gone) then delete_attestations(array(select g.digest from gone g)) else 0 end as rows,
         (select c.digest from compared c order by c.digest offset ${BATCH_ROWS - 1} limit 1) as last
  from held h`,
    )
    const { is_held, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows, isLast: last === null }
  })
}

const NOTHING: Pass = { outcome: 'done', rows: 0, batches: 0 }

/**
 * Deletes results of checking images that are too old, unless 0 days keep them, and those of images that have left the inventory
 * (supply-chain, States and transitions; interop-supply-chain 7). A result that is being written at that moment stays.
 */
export const attestationRetention: Job = {
  name: 'attestation-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: () => HOUR_SECS,

  async run(context) {
    const expired = context.config.attestationRetentionDays === 0 ? NOTHING : await removeExpired(context)
    if (expired.outcome === 'skipped' || expired.outcome === 'aborted') return expired
    const left = await removeLeft(context)
    return {
      outcome: left.outcome === 'done' ? expired.outcome : left.outcome,
      rows: expired.rows + left.rows,
      batches: expired.batches + left.batches,
    }
  },

  async count({ config: { attestationRetentionDays: days }, db }) {
    const [row] = await db.job(
      (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows
  from image_attestation a
  where ${days}::integer > 0 and ${isExpired(sql, days)} or ${hasLeft(sql)}`,
    )
    return row!.rows
  },
}
