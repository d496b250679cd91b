-- The ids, in upper case, under which findings of the given vulnerability may be stored: itself, the vulnerabilities
-- and advisories that have it as an alias, and the aliases of all these. The other vulnerabilities of an advisory about
-- several are none. At most 64 vulnerabilities per alias.
create or replace function vuln_names(asked text) returns text[]
language sql stable parallel safe
as $$
  with called as materialized (
    select upper(asked) as name
    union
    (select upper(a.vuln_id) from cve_alias a where upper(a.alias) = upper(asked) order by 1 limit 64))
  select array_agg(n.name)
  from (select c.name from called c
        union
        select a.name
        from called c
        cross join lateral (
          select array(select upper(a.alias) from cve_alias a where upper(a.vuln_id) = c.name order by a.alias
                       limit 32) as aliases) l
        cross join lateral unnest(l.aliases) a(name)
        where c.name = upper(asked) or not claims_several(c.name, l.aliases)) n
  where asked is not null
$$;
