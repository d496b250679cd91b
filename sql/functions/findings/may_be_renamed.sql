-- Whether a finding may be stored under another id: its own id is no CVE and it names no vulnerability itself. With one
-- alias the caller has already chosen that, with several no choice would be right.
create or replace function may_be_renamed(id text, aliases text[]) returns boolean
language sql immutable parallel safe
as $$
  select id_rank(id) > 0 and not exists (select from unnest(aliases) a(alias) where id_rank(a.alias) < 2)
$$;
