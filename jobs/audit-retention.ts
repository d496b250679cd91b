import type { Sql } from '../lib/db/index.ts'
import { inRestedBatches, type Job } from './job.ts'
import { held } from './locks.ts'

const MAX_BATCHES = 200

const isExpired = (sql: Sql, days: number) =>
  sql`v.observed_at < now() at time zone 'utc' - make_interval(days => ${days})`

/**
 * Deletes verdicts beyond their retention days, the oldest first (docs/contract.md#retention).
 *
 * Verdicts are read in index order under a limit before their age is compared, so that a statement stays short whatever
 * the planner estimates. A pass continues where its last batch ended, past the index entries of deleted rows. The start
 * comes from a subquery: for a constant the planner would consult outdated statistics.
 */
export const auditRetention: Job = {
  name: 'audit-retention',
  firstAfterSecs: 60,
  everySecs: (config) => (config.auditRetentionDays === 0 ? null : config.auditRetentionIntervalSecs),

  async run({ config, db, signal }) {
    const { auditRetentionDays: days, auditRetentionBatchSize: batchRows } = config
    let after = { time: '-infinity', id: '0' }
    return inRestedBatches(signal, MAX_BATCHES, async () => {
      const [batch] = await db.job(
        (sql) => sql<{ is_held: boolean; found: number; rows: number; time: string | null; id: string | null }[]>`
  with ${held(sql, 'audit-retention')},
  expired as materialized (
    select v.place, v.observed_at, v.id
    from (select v.ctid as place, v.observed_at, v.id
          from audit_verdict v
          where (v.observed_at, v.id) > ((select ${after.time}::text::timestamp from held where is_held),
                                         (select ${after.id}::text::bigint))
          order by v.observed_at, v.id
          limit ${batchRows}) v
    where ${isExpired(sql, days)}),
  locked as materialized (
    select v.ctid as place from audit_verdict v
    where v.ctid = any (array(select e.place from expired e))
    for update skip locked),
  deleted as (
    delete from audit_verdict v where v.ctid = any (array(select l.place from locked l)) returning 1)
  select h.is_held,
         (select count(*)::int from expired) as found,
         (select count(*)::int from deleted) as rows,
         e.observed_at::text as time, e.id::text as id
  from held h
  left join lateral (select e.observed_at, e.id from expired e order by e.observed_at desc, e.id desc limit 1) e
    on true`,
      )
      const { is_held, found, rows, time, id } = batch!
      if (time !== null && id !== null) after = { time, id }
      return { isHeld: is_held, rows, isLast: found < batchRows }
    })
  },

  async count({ config, db }) {
    const maxRows = MAX_BATCHES * config.auditRetentionBatchSize
    const [row] = await db.job(
      (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows
  from (select from audit_verdict v where ${isExpired(sql, config.auditRetentionDays)} limit ${maxRows}) v`,
    )
    return row!.rows
  },
}
