-- Requests a refresh of vulnerabilities whose facts may have become lower. Skip if a refresh was requested in the last
-- minute: a request is kept for two minutes and read once more at the end, after this statement has ended. This bounds
-- the requests even on a day when every payload changes. Nested loops over the index, even under a plan made when the
-- table was small.
create or replace function request_fact_refresh(vulns text[]) returns void
language sql
set enable_hashjoin = off
set enable_mergejoin = off
set enable_nestloop = on
set enable_seqscan = off
as $$
  insert into cve_news (vuln_id)
  select v.vuln_id
  from unnest(vulns) v(vuln_id)
  where not exists (
    select from cve_news n
    where n.vuln_id = v.vuln_id and num_nonnulls(n.kev, n.kev_date_added, n.epss, n.epss_percentile) = 0
      and n.noted_at >= now() at time zone 'utc' - interval '1 minute')
$$;
