-- Whether a finding may be kept by another id than its own: not a CVE, nor an advisory that names vulnerabilities itself. With one of
-- them it would be kept by that, with several it is none of them.
create or replace function may_be_renamed(id text, aliases text[]) returns boolean
language sql immutable parallel safe
as $$
  select id_rank(id) > 0 and not exists (select from unnest(aliases) a(alias) where id_rank(a.alias) < 2)
$$;
