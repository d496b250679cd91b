-- The ids in upper case of all vulnerabilities that decisions may be about: those of decisions that hold, and other ids
-- of these. Some are about others, see `names_of_vulns`.
create or replace function names_decided_on() returns table (name text)
language sql stable parallel safe
as $$
  with decided as materialized (
    select distinct d.name from vuln_decision d where d.ended_at is null)
  select d.name from decided d
  union
  select upper(a.vuln_id) from decided d join cve_alias a on upper(a.alias) = d.name
  union
  select upper(a.alias) from decided d join cve_alias a on upper(a.vuln_id) = d.name
  union
  select v.alias from decided d join vex_alias v on v.vuln_id = d.name
$$;
