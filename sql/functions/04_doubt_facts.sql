-- Asks for another look at vulnerabilities of which something may have fallen. Whoever asked within a minute has asked for us too: a
-- question is kept for two, and looked at again at their end, when this statement has ended. So there are few of each, even on a day on
-- which every payload changes. Each is looked up, also by a plan from when the table was small.
create or replace function doubt_facts(vulns text[]) returns void
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
