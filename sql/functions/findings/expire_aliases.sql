-- Checks the aliases that nobody named for two days, the oldest first: those that a finding still names are refreshed,
-- the others deleted. Payloads refresh aliases after one day, so a payload that is being stored keeps its own.
-- Decisions under a deleted alias hold for its vulnerability no more, so the next pass counts it again.
create or replace function expire_aliases(max_aliases bigint)
returns table (aliases bigint, deleted bigint)
language sql strict
set enable_nestloop = on
as $$
  with old as materialized (
    select a.vuln_id, a.alias
    from cve_alias a
    where a.told_at < now() at time zone 'utc' - interval '2 days'
    order by a.told_at
    limit max_aliases),
  looked as materialized (
    select o.*, (select true from image_finding f
                 where upper(f.vuln_id) = upper(o.vuln_id) and f.vuln_id = o.vuln_id and o.alias = any (f.aliases)
                       limit 1) is true as is_told
    from old o),
  kept as (
    update cve_alias a set told_at = now() at time zone 'utc'
    from looked l
    where l.is_told and a.vuln_id = l.vuln_id and a.alias = l.alias
    returning 1),
  gone as (
    delete from cve_alias a
    using looked l
    where not l.is_told and a.vuln_id = l.vuln_id and a.alias = l.alias
      and a.told_at < now() at time zone 'utc' - interval '2 days'
    returning a.vuln_id, a.alias),
  news as (
    insert into summary_news (vuln_id)
    select distinct d.vuln_id from gone g join cve_decided d on d.vuln_id = any (array[g.vuln_id, g.alias])
    order by d.vuln_id
    on conflict do nothing)
  select (select count(*) from kept) + (select count(*) from gone), (select count(*) from gone)
$$;
