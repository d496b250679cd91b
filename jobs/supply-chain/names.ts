import { type Batch, inBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

/** Ids that one statement looks at; it names the findings of one payload anew at most. */
const LOOKED_AT = 1_000
const MAX_BATCHES = 10_000

/**
 * Names findings anew by the aliases that are known now. What came under an id that another payload tells as the alias of one vulnerability is
 * kept by that vulnerability, and by its own id again when nobody tells so any more or several claim it. Ingest names what it
 * stores by the aliases that are known at that moment: this is for those that are told, or forgotten, afterwards.
 */
export function nameFindings({ db, signal }: JobContext): Promise<Pass> {
  let after = ''
  return inBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number | null; last: string | null }[]>`
  with ${held(sql, 'supply-chain-refresh')}
  select h.is_held, n.payloads::int as rows, n.last
  from held h
  left join lateral rename_next_findings(case when h.is_held then ${after}::text end, ${LOOKED_AT}) n on true`,
    )
    const { is_held, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows: rows ?? 0, isLast: last === null }
  })
}
