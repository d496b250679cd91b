import type { Sql } from '../../lib/db/index.ts'
import { inRestedBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

const MAX_BATCHES = 200
/** The database holds at most 64 sets. */
const SETS_AT_ONCE = 10

/** Incomplete sets of SBOM pages that received no page for `ttlSecs`. */
const expiredSets = (sql: Sql, ttlSecs: number) => sql`
    select p.digest, p.source, p.set_id, count(*)::int as pages
    from sbom_page p
    group by p.digest, p.source, p.set_id
    having max(p.received_at) < now() at time zone 'utc' - make_interval(secs => ${ttlSecs})`

/** Payloads that were not posted within the grace period and that no image needs, the oldest first. */
const unusedPayloads = (sql: Sql, { config }: Pick<JobContext, 'config'>) => sql`
    select k.digest, k.source
    from (select r.digest, r.source, max(r.received_at) as received_at from image_report r group by r.digest,
          r.source) k
    where ${config.supplyChainRetentionDays} > 0
      and k.received_at < now() at time zone 'utc' - make_interval(hours => ${config.supplyChainUnlinkedGraceHours})
      and is_payload_unused(k.digest, k.source, ${config.supplyChainRetentionDays},
                            ${config.supplyChainUnlinkedGraceHours},
                            ${config.imageRunningWindowSecs})
    order by k.received_at, k.digest, k.source`

export function expireSets({ config, db, signal }: JobContext): Promise<Pass> {
  return inRestedBatches(signal, MAX_BATCHES, async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; found: number }[]>`
  with ${held(sql, 'supply-chain-refresh')},
  expired as materialized (
    select s.* from held h cross join lateral (${expiredSets(sql, config.sbomPageTtlSecs)}) s where h.is_held
           limit ${SETS_AT_ONCE}),
  deleted as materialized (
    select expire_pages(e.digest, e.source, e.set_id, ${config.sbomPageTtlSecs}) as rows from expired e)
  select h.is_held, (select coalesce(sum(d.rows), 0)::int from deleted d) as rows,
         (select count(*)::int from expired) as found
  from held h`,
    )
    // A set that is being written stays, and would be found again.
    const { is_held, rows, found } = batch!
    return { isHeld: is_held, rows, isLast: found < SETS_AT_ONCE || rows === 0 }
  })
}

export function deletePayloads(context: JobContext): Promise<Pass> {
  const { config, db, signal } = context
  return inRestedBatches(signal, MAX_BATCHES, async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; found: number }[]>`
  with ${held(sql, 'supply-chain-refresh')},
  unused as materialized (
    select u.* from held h cross join lateral (${unusedPayloads(sql, context)}) u where h.is_held
           limit ${config.supplyChainBatchSize}),
  deleted as materialized (
    select delete_payload(u.digest, u.source, ${config.supplyChainRetentionDays},
                          ${config.supplyChainUnlinkedGraceHours},
                          ${config.imageRunningWindowSecs}) as rows
    from unused u)
  select h.is_held, (select coalesce(sum(d.rows), 0)::int from deleted d) as rows,
         (select count(*)::int from unused) as found
  from held h`,
    )
    const { is_held, rows, found } = batch!
    return { isHeld: is_held, rows, isLast: found < config.supplyChainBatchSize || rows === 0 }
  })
}

/** Returns how many staged pages and payload headers a pass would delete. */
export async function countDeletions(context: JobContext): Promise<number> {
  const [row] = await context.db.job(
    (sql) => sql<{ rows: number }[]>`
  select (select coalesce(sum(s.pages), 0)::int from (${expiredSets(sql, context.config.sbomPageTtlSecs)}) s)
       + (select count(*)::int
          from (${unusedPayloads(sql, context)}) u join image_report r on r.digest = u.digest
            and r.source = u.source) as rows`,
  )
  return row!.rows
}
