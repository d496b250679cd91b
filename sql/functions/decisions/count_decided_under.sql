-- Counts the listed vulnerabilities again that decisions under these names, in upper case, are about, also by aliases
-- of VEX documents; of more than `max_counted` the job counts them in its next pass, since that may take longer than a
-- statement. The caller has the lock of decisions, so that no pass counts without these and then forgets the news.
drop function if exists count_decided_under(text[]);
create or replace function count_decided_under(names text[], max_counted bigint) returns void
language plpgsql
set enable_nestloop = on
set enable_seqscan = off
as $$
declare
  vulns constant text[] := array(
    select distinct d.vuln_id
    from unnest(names) n(name)
    cross join lateral (
      select k.name from unnest(vuln_names(n.name)) k(name)
      union
      select v.alias from vex_alias v where v.vuln_id = n.name) k
    join cve_detail d on upper(d.vuln_id) = k.name
    order by 1);
begin
  if cardinality(vulns) <= max_counted then
    perform count_decided(vulns);
  else
    insert into summary_news (vuln_id) select v.vuln_id from unnest(vulns) v(vuln_id) on conflict do nothing;
  end if;
end
$$;
