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
      (sql) => sql<{ is_held: boolean; rows: number; found: number; last: string | null }[]>`
  with ${held(sql, 'supply-chain-refresh')},
  looked as materialized (
    select n.id, n.vuln_id
    from cve_news n
    where (select is_held from held) and n.id > ${after}::bigint
    order by n.id
    limit ${NEWS_AT_ONCE}),
  told as materialized (
    select distinct l.vuln_id from looked l),
  facts as materialized (
    select t.vuln_id, f.*
    from told t
    cross join lateral (
      select bool_or(f.kev) as kev, min(f.kev_date_added) as kev_date_added, max(f.epss) as epss,
             max(f.epss_percentile) as epss_percentile
      from image_finding f
      where f.vuln_id = t.vuln_id
        and (f.kev is not null or f.kev_date_added is not null or f.epss is not null or f.epss_percentile is not null)) f),
  forgotten as (
    delete from cve_fact c
    using facts f
    where c.vuln_id = f.vuln_id and num_nonnulls(f.kev, f.kev_date_added, f.epss, f.epss_percentile) = 0
    returning 1),
  written as (
    insert into cve_fact as c (vuln_id, kev, kev_date_added, epss, epss_percentile)
    select f.vuln_id, f.kev, f.kev_date_added, f.epss, f.epss_percentile
    from facts f
    where num_nonnulls(f.kev, f.kev_date_added, f.epss, f.epss_percentile) > 0
    on conflict (vuln_id) do update set
      kev = excluded.kev, kev_date_added = excluded.kev_date_added, epss = excluded.epss, epss_percentile = excluded.epss_percentile
    where (c.kev, c.kev_date_added, c.epss, c.epss_percentile)
          is distinct from (excluded.kev, excluded.kev_date_added, excluded.epss, excluded.epss_percentile)
    returning 1),
  read as (
    delete from cve_news n
    using told t
    where n.vuln_id = t.vuln_id
      and (num_nonnulls(n.kev, n.kev_date_added, n.epss, n.epss_percentile) > 0
           or n.noted_at < now() at time zone 'utc' - make_interval(secs => ${SETTLED_AFTER_SECS})))
  select h.is_held,
         (select count(*)::int from forgotten) + (select count(*)::int from written) as rows,
         (select count(*)::int from looked) as found,
         (select max(l.id)::text from looked l) as last
  from held h`,
    )
    const { is_held, rows, found, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows, isLast: found < NEWS_AT_ONCE }
  })
}
