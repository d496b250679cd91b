import type { Database } from '../../lib/db/index.ts'
import { type Batch, inBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

/** Images that one statement compares with what the summary knows of them, and those of them that it takes note of. */
const LOOKED_AT = 500
const REREAD = 10
const MAX_BATCHES = 2_000

/**
 * Finds the images whose payloads or workloads are other than the summary was made of, notes what they are now, and which vulnerabilities are
 * to be counted again for it. All images are compared, since time alone ends a container; but only of those with other payloads are
 * findings read.
 */
export async function findChangedImages({ config, db, signal }: JobContext): Promise<Pass> {
  let after = ''
  return inBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number | null; last: string | null }[]>`
  with ${held(sql, 'supply-chain-refresh')}
  select h.is_held, r.images::int as rows, r.last
  from held h
  left join lateral refresh_images(case when h.is_held then ${after}::text end, ${LOOKED_AT}, ${REREAD}, ${config.imageRunningWindowSecs}) r on true`,
    )
    const { is_held, rows, last } = batch!
    if (last !== null) after = last
    return { isHeld: is_held, rows: rows ?? 0, isLast: last === null }
  })
}

/** How many images the summary knows otherwise than they are. */
export async function countChangedImages(db: Database, windowSecs: number): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows from images_to_refresh('', null, ${windowSecs}) i where i.is_reread or i.is_moved`,
  )
  return row!.rows
}
