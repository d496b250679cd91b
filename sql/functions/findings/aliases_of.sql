-- The other ids of a vulnerability, from any stored report, without repeats in any case.
create or replace function aliases_of(vuln text) returns text[]
language sql stable parallel safe
as $$
  select a.aliases from alias_list(vuln) a
$$;
