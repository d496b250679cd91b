import { type Batch, inBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

/** Vulnerabilities that one statement counts: each may be in every image, and each of these in many workloads. */
const COUNTED = 200
const MAX_BATCHES = 10_000

/** Counts the vulnerabilities of which something has changed, and writes where a count is another one. */
export function countChanged({ db, signal }: JobContext): Promise<Pass> {
  return inBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number | null; cves: number | null }[]>`
  with ${held(sql, 'supply-chain-refresh')}
  select h.is_held, c.rows::int as rows, c.cves::int as cves
  from held h
  left join lateral count_cves(case when h.is_held then ${COUNTED}::bigint end) c on true`,
    )
    const { is_held, rows, cves } = batch!
    return { isHeld: is_held, rows: rows ?? 0, isLast: (cves ?? 0) < COUNTED }
  })
}
