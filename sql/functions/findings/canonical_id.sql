-- The id of the vulnerability that findings name as having this alias: a CVE, or a GHSA id where this id is of neither
-- kind. Null if there is none or if several claim the alias; ids that are aliases of each other count as one.
create or replace function canonical_id(id text) returns text
language sql stable parallel safe
as $$
  select c.vuln_id
  from cve_alias c
  where upper(c.alias) = upper(id)
    and id_rank(c.vuln_id) < id_rank(id)
    and not exists (
      select from cve_alias o
      where upper(o.alias) = upper(id) and upper(o.vuln_id) <> upper(c.vuln_id)
        and not exists (
          select from cve_alias k where upper(k.vuln_id) = upper(c.vuln_id) and upper(k.alias) = upper(o.vuln_id)))
  order by c.vuln_id
  limit 1
$$;
