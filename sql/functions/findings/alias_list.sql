-- The other ids of a vulnerability, from any stored report, without repeats in any case; one row. In FROM, where the
-- planner can inline it: a page calls it for each of its rows.
create or replace function alias_list(vuln text) returns table (aliases text[])
language sql stable parallel safe
as $$
  select coalesce(array_agg(n.alias order by n.alias), '{}')
  from (select min(a.alias) as alias from cve_alias a where a.vuln_id = vuln group by upper(a.alias) order by 1
        limit 32) n
$$;
