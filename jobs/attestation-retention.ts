import type { Sql } from '../lib/db/index.ts'
import { type Batch, inRestedBatches, inSequence, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'

const HOUR_SECS = 3_600
const FIRST_AFTER_SECS = 180
/** Results that one statement deletes by age or compares with the inventory. */
const BATCH_ROWS = 5_000
/** Batches per pass that delete by age. */
const MAX_BATCHES = 20
/** Batches per pass that compare: a million results, more than any cluster has images. */
const MAX_COMPARED = 200

const isExpired = (sql: Sql, days: number) => sql`
    a.checked_at < now() at time zone 'utc' - make_interval(days => ${days})`

// Not written with "not exists": the planner would turn that into a join and read the whole inventory per batch.
const hasLeft = (sql: Sql) => sql`
    (select 1 from image m where m.digest = a.digest limit 1) is null
    and (select 1 from workload_container w where w.image_digest = a.digest limit 1) is null`

/** Deletes results that were not renewed within the retention days, the oldest first, also of images that run. */
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

/** Deletes results of images that have left the inventory: compares all results, in the order of their digests. */
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
         case when exists (select from gone) then delete_attestations(array(select g.digest from gone g))
           else 0 end as rows,
         (select c.digest from compared c order by c.digest offset ${BATCH_ROWS - 1} limit 1) as last
  from held h`,
    )
    const { is_held, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows, isLast: last === null }
  })
}

/**
 * Deletes verification results beyond their retention days, unless these are 0, and results of images that have left
 * the inventory (docs/contract.md#retention). Rows locked by another session are skipped.
 */
export const attestationRetention: Job = {
  name: 'attestation-retention',
  firstAfterSecs: FIRST_AFTER_SECS,
  everySecs: () => HOUR_SECS,

  run: (context) =>
    inSequence([
      ...(context.config.attestationRetentionDays === 0 ? [] : [() => removeExpired(context)]),
      () => removeLeft(context),
    ]),

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
