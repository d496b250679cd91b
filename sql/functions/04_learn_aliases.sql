-- Notes which other ids findings tell of their vulnerabilities. One that is told again is noted again after a day: by then a pass may have
-- found nobody who tells it, and would delete it after another. In order, since other payloads tell of the same at the same time.
create or replace function learn_aliases(told image_finding[]) returns void
language sql
as $$
  insert into cve_alias as a (vuln_id, alias)
  select distinct f.vuln_id, x.alias
  from unnest(told) f cross join unnest(f.aliases) x(alias)
  order by 1, 2
  on conflict (vuln_id, alias) do update set told_at = excluded.told_at
  where a.told_at < excluded.told_at - interval '1 day'
$$;
