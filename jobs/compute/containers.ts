import type { Batch, JobContext } from '../job.ts'
import { held } from '../locks.ts'

/** Containers that one statement examines, and those that it deletes: posts of history wait meanwhile. */
const EXAMINED = 2_000
const DELETED = 500

/** Deletes containers without history; each call continues where the last one ended. */
export function deleteContainers({ db, log }: JobContext): () => Promise<Batch> {
  let after = '0'
  return async () => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; last: string | null; is_held_up: boolean }[]>`
  with ${held(sql, 'compute-retention')}
  select h.is_held, coalesce(f.forgotten, 0)::int as rows, f.last_id::text as last,
         coalesce(f.is_held_up, false) as is_held_up
  from held h
  left join lateral compute_delete_unused(case when h.is_held then ${after}::text::bigint end, ${EXAMINED},
                                          ${DELETED}) f on true`,
    )
    const { is_held, rows, last, is_held_up } = batch!
    if (is_held_up)
      log.warn({ job: 'compute-retention' }, 'posts of history take long: the next pass deletes unused containers')
    after = last ?? after
    return { isHeld: is_held, rows, isLast: last === null || is_held_up }
  }
}

export async function countContainers({ db }: JobContext): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows from compute_unused(array(select c.id from compute_container c)) u`,
  )
  return row!.rows
}
