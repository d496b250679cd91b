import { type Batch, inBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

const LOOKED_AT = 500
/** With a pass every five minutes that is some millions in two days, more than databases of vulnerabilities have. */
const MAX_BATCHES = 20

/** Deletes other ids of vulnerabilities of which no finding tells any more; each is looked at once in two days. */
export function forgetAliases({ db, signal }: JobContext): Promise<Pass> {
  return inBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; looked: number | null; rows: number | null }[]>`
  with ${held(sql, 'supply-chain-refresh')}
  select h.is_held, f.aliases::int as looked, f.deleted::int as rows
  from held h
  left join lateral expire_aliases(case when h.is_held then ${LOOKED_AT}::bigint end) f on true`,
    )
    const { is_held, looked, rows } = batch!
    return { isHeld: is_held, rows: rows ?? 0, isLast: (looked ?? 0) < LOOKED_AT }
  })
}
