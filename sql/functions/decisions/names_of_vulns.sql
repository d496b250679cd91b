-- The ids in upper case under which decisions about these vulnerabilities may be stored: itself, its aliases, and the
-- vulnerability or the advisories that have it as an alias, also by the word of VEX statements about one vulnerability.
-- Decisions about one of several vulnerabilities of an advisory do not hold for the advisory, nor for the other ones
-- (docs/contract.md#decisions).
create or replace function names_of_vulns(vulns text[]) returns table (vuln_id text, name text)
language sql stable parallel safe
as $$
  with ids as materialized (
    select distinct i.vuln_id, upper(i.vuln_id) as name from unnest(vulns) i(vuln_id)),
  called as materialized (
    select i.vuln_id, i.name from ids i
    union
    select i.vuln_id, a.name
    from ids i
    cross join lateral (select upper(a.vuln_id) as name from cve_alias a where upper(a.alias) = i.name order by 1
                        limit 64) a
    -- An id that several vulnerabilities claim stays by itself.
    where id_rank(a.name) >= id_rank(i.name) or a.name = upper(canonical_id(i.name)))
  select c.vuln_id, c.name from called c
  union
  select c.vuln_id, a.name
  from called c
  cross join lateral (
    select array(select upper(a.alias) from cve_alias a where upper(a.vuln_id) = c.name order by a.alias
                 limit 32) as aliases) l
  cross join lateral unnest(l.aliases) a(name)
  where not claims_several(c.name, l.aliases)
  union
  select i.vuln_id, v.name
  from ids i
  cross join lateral (
    select min(a.vuln_id) as name from vex_alias a where a.alias = i.name having min(a.vuln_id) = max(a.vuln_id)) v
$$;
