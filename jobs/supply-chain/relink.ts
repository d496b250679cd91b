import type { Database, Sql } from '../../lib/db/index.ts'
import { type Batch, inBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

/** Payloads that one statement examines, and those that it relinks: no other process can write links meanwhile. */
const EXAMINED = 200
const RELINKED = 25
const MAX_BATCHES = 2_000

/** The last payload examined. */
interface Cursor {
  digest: string
  source: string
}

/** The first payloads after the cursor, and those of them with outdated links. */
const looked = (sql: Sql, after: Cursor) => sql`
  looked as materialized (
    select distinct r.digest, r.source
    from image_report r
    where (select is_held from held) and (r.digest, r.source) > (${after.digest}, ${after.source})
    order by r.digest, r.source
    limit ${EXAMINED}),
  stale as materialized (
    select k.digest, k.source
    from looked k
    where exists (
      select from expected_links(k.digest, k.source) w
      full join (select l.image_digest, l.join_rank from image_link l where l.digest = k.digest
                 and l.source = k.source) l
        on l.image_digest = w.image_digest
      where w.join_rank is distinct from l.join_rank)
    order by k.digest, k.source
    limit ${RELINKED})`

/**
 * Updates the links of all payloads (docs/contract.md#joins): finds outdated ones and holds the lock of links only
 * while writing. If another session has that lock, the same payloads are examined again.
 */
export async function relinkAll({ db, signal }: JobContext): Promise<Pass> {
  let after: Cursor = { digest: '', source: '' }
  return inBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<
        { is_held: boolean; is_free: boolean; rows: number; found: number; stale: number; last: Cursor | null }[]
      >`
  with ${held(sql, 'supply-chain-refresh')},
  ${looked(sql, after)},
  free as materialized (
    select pg_try_advisory_xact_lock(x'6c696e6b'::integer, 0) as is_free from (select from stale limit 1) s),
  relinked as materialized (
    select relink(s.digest, s.source) as rows from stale s where (select is_free from free))
  select h.is_held,
         coalesce((select is_free from free), true) as is_free,
         (select coalesce(sum(r.rows), 0)::int from relinked r) as rows,
         (select count(*)::int from looked) as found,
         (select count(*)::int from stale) as stale,
         (select json_build_object('digest', l.digest, 'source', l.source)
          from looked l order by l.digest desc, l.source desc limit 1) as last
  from held h`,
    )
    const { is_held, is_free, rows, found, stale, last } = batch!
    const isDone = is_free && stale < RELINKED
    if (isDone && last !== null) after = last
    return { isHeld: is_held, rows, isLast: isDone && found < EXAMINED }
  })
}

/** Returns how many payloads have outdated links. */
export async function countStaleLinks(db: Database): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows
  from (select distinct r.digest, r.source from image_report r) k
  where exists (
    select from expected_links(k.digest, k.source) w
    full join (select l.image_digest, l.join_rank from image_link l where l.digest = k.digest and l.source = k.source) l
      on l.image_digest = w.image_digest
    where w.join_rank is distinct from l.join_rank)`,
  )
  return row!.rows
}
