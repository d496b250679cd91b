-- Records what findings say of their vulnerabilities where it is new: most payloads repeat what others have said. While
-- a refresh is requested, a refresh that runs now may not see these rows, so only an identical record makes this one
-- unnecessary. Nested loops over the index, even under a plan made when the table was small.
create or replace function record_facts(posted image_finding[]) returns void
language sql
set enable_nestloop = on
set enable_seqscan = off
as $$
  insert into cve_news (vuln_id, kev, kev_date_added, epss, epss_percentile)
  select t.vuln_id, t.kev, t.kev_date_added, t.epss, t.epss_percentile
  from (select f.vuln_id, bool_or(f.kev) as kev, min(f.kev_date_added) as kev_date_added, max(f.epss) as epss,
               max(f.epss_percentile) as epss_percentile
        from unnest(posted) f
        where num_nonnulls(f.kev, f.kev_date_added, f.epss, f.epss_percentile) > 0
        group by f.vuln_id) t
  cross join lateral current_facts(t.vuln_id) k
  cross join lateral (
    select coalesce(bool_or(num_nonnulls(n.kev, n.kev_date_added, n.epss, n.epss_percentile) = 0),
                    false) as is_refresh_requested,
           coalesce(bool_or((n.kev, n.kev_date_added, n.epss, n.epss_percentile)
                            is not distinct from (t.kev, t.kev_date_added, t.epss, t.epss_percentile)),
                            false) as is_recorded
    from cve_news n where n.vuln_id = t.vuln_id) n
  where n.is_refresh_requested and not n.is_recorded
     or t.kev and k.kev is not true
     or t.kev is not null and k.kev is null
     or t.kev_date_added < coalesce(k.kev_date_added, 'infinity')
     or t.epss > coalesce(k.epss, -1)
     or t.epss_percentile > coalesce(k.epss_percentile, -1)
$$;
