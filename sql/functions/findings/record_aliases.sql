-- Records the aliases that findings name. A repeated alias is refreshed once a day: `expire_aliases` deletes those not
-- named for two days. Sorted, since concurrent payloads write the same rows.
create or replace function record_aliases(posted image_finding[]) returns void
language sql
as $$
  insert into cve_alias as a (vuln_id, alias)
  select distinct f.vuln_id, x.alias
  from unnest(posted) f cross join unnest(f.aliases) x(alias)
  order by 1, 2
  on conflict (vuln_id, alias) do update set told_at = excluded.told_at
  where a.told_at < excluded.told_at - interval '1 day'
$$;
