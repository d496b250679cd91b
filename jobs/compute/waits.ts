import type { Batch, JobContext } from '../job.ts'
import { held } from '../locks.ts'
import { countEnd, shrinking } from './history.ts'

/** Containers of a batch; of each, the waits of one hour are moved, some 600. */
const CONTAINERS_AT_ONCE = 100

/** Moves the waits of earlier hours, without those that no answer has; each call continues where the last one ended. */
export function keepWaits({ db }: JobContext): () => Promise<Batch> {
  let after = '0'
  return shrinking(CONTAINERS_AT_ONCE, async (containers) => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number | null; hours: number | null; last: string | null }[]>`
  with ${held(sql, 'compute-fold')},
  gate as materialized (
    select h.is_held, f.pack_after <= now() at time zone 'utc' as is_open from held h cross join compute_fold f)
  select g.is_held, w.moved::int as rows, w.hours::int as hours, w.last_id::text as last
  from gate g
  left join lateral compute_keep_waits(case when g.is_held and g.is_open then ${after}::text::bigint end,
                                       ${countEnd(sql)}, ${containers}) w on true`,
    )
    const { is_held, rows, hours, last } = batch!
    // The same containers may have more hours.
    if (hours === 0) after = last ?? after
    return { isHeld: is_held, rows: rows ?? 0, isLast: last === null }
  })
}

export async function countWaits({ db }: JobContext): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows from compute_contention p cross join compute_fold f
  where p.ts < ${countEnd(sql)} and f.pack_after <= now() at time zone 'utc'`,
  )
  return row!.rows
}
