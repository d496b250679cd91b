import { type Batch, inBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

/** Pieces of news that one statement takes, with all others about the same vulnerabilities. */
const NEWS_AT_ONCE = 500
const MAX_BATCHES = 5_000
/** No statement of ingest takes as long. */
const SETTLED_AFTER_SECS = 120

/**
 * Brings what is known of vulnerabilities themselves up to date where ingest has told of news: the highest over every stored row, so that
 * it may fall again (interop-supply-chain S14). Ingest adds to the news meanwhile and waits for nothing here; what it added since the
 * statement began stays for the next one. So does for a while what said that a value may fall: a payload that is not committed yet may
 * hold that very value, and have kept silent because it was known.
 */
export function foldFacts({ db, signal }: JobContext): Promise<Pass> {
  let after = '0'
  return inBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number | null; last: string | null }[]>`
  with ${held(sql, 'supply-chain-refresh')}
  select h.is_held, f.rows::int as rows, f.last::text as last
  from held h
  left join lateral refresh_facts(case when h.is_held then ${after}::bigint end, ${NEWS_AT_ONCE}, ${SETTLED_AFTER_SECS}) f on true`,
    )
    const { is_held, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows: rows ?? 0, isLast: last === null }
  })
}
