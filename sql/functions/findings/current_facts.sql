-- The facts known of a vulnerability now: as of the last refresh, plus what was recorded since.
create or replace function current_facts(vuln text)
returns table (kev boolean, kev_date_added timestamp, epss real, epss_percentile real)
language sql stable parallel safe
as $$
  select bool_or(k.kev), min(k.kev_date_added), max(k.epss), max(k.epss_percentile)
  from (select f.kev, f.kev_date_added, f.epss, f.epss_percentile from cve_fact f where f.vuln_id = vuln
        union all
        select n.kev, n.kev_date_added, n.epss, n.epss_percentile from cve_news n where n.vuln_id = vuln) k
$$;
