-- Recomputes the facts of the vulnerabilities in the next rows of `cve_news`: the highest values over all stored
-- findings. Requests to refresh stay until they are older than `settled_after_secs`. A vulnerability with other facts
-- is to be counted again, since its tier may change. `last` is where to continue, null at the end.
create or replace function refresh_facts(after bigint, max_news bigint, settled_after_secs integer)
returns table (rows bigint, last bigint)
language sql strict
set enable_seqscan = on
set enable_bitmapscan = on
set enable_hashjoin = on
set enable_mergejoin = on
set plan_cache_mode = auto
set work_mem = '32MB'
as $$
  with batch as materialized (
    select n.id, n.vuln_id
    from cve_news n
    where n.id > after
    order by n.id
    limit max_news),
  ids as materialized (
    select distinct l.vuln_id from batch l),
  facts as materialized (
    select t.vuln_id, f.*
    from ids t
    cross join lateral (
      select bool_or(f.kev) as kev, min(f.kev_date_added) as kev_date_added, max(f.epss) as epss,
             max(f.epss_percentile) as epss_percentile
      from image_finding f
      where f.vuln_id = t.vuln_id
        and (f.kev is not null or f.kev_date_added is not null or f.epss is not null
             or f.epss_percentile is not null)) f),
  deleted as (
    delete from cve_fact c
    using facts f
    where c.vuln_id = f.vuln_id and num_nonnulls(f.kev, f.kev_date_added, f.epss, f.epss_percentile) = 0
    returning c.vuln_id),
  written as (
    insert into cve_fact as c (vuln_id, kev, kev_date_added, epss, epss_percentile)
    select f.vuln_id, f.kev, f.kev_date_added, f.epss, f.epss_percentile
    from facts f
    where num_nonnulls(f.kev, f.kev_date_added, f.epss, f.epss_percentile) > 0
    on conflict (vuln_id) do update set
      kev = excluded.kev, kev_date_added = excluded.kev_date_added, epss = excluded.epss,
      epss_percentile = excluded.epss_percentile
    where (c.kev, c.kev_date_added, c.epss, c.epss_percentile)
          is distinct from (excluded.kev, excluded.kev_date_added, excluded.epss, excluded.epss_percentile)
    returning c.vuln_id),
  news as (
    insert into summary_news (vuln_id)
    select c.vuln_id
    from (select d.vuln_id from deleted d union select w.vuln_id from written w) c
    where exists (select from image_cve i where i.vuln_id = c.vuln_id)
    order by c.vuln_id
    on conflict do nothing),
  read as (
    delete from cve_news n
    using ids t
    where n.vuln_id = t.vuln_id
      and (num_nonnulls(n.kev, n.kev_date_added, n.epss, n.epss_percentile) > 0
           or n.noted_at < now() at time zone 'utc' - make_interval(secs => settled_after_secs)))
  select (select count(*) from deleted) + (select count(*) from written),
         case when (select count(*) from batch) = max_news then (select max(l.id) from batch l) end
$$;
