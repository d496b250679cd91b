-- Whether an id with these aliases is an advisory about several vulnerabilities: it names more than one CVE, or no CVE
-- and more than one GHSA id. A CVE with its other ids is none.
create or replace function claims_several(id text, aliases text[]) returns boolean
language sql immutable parallel safe
as $$
  select coalesce((
    select count(distinct upper(a.alias)) > 1
    from unnest(aliases) a(alias)
    where id_rank(a.alias) < 2
      and id_rank(a.alias) = least(id_rank(id), (select min(id_rank(o.alias)) from unnest(aliases) o(alias)))), false)
$$;
