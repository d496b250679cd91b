-- The artifact in a name `group:artifact`; null in any other name. It is compared in lower case (A to Z).
create or replace function artifact_of(name text) returns text
language sql immutable parallel safe
as $$
  select case when strpos(name, ':') > 0 then nullif(lower(split_part(name, ':', -1) collate "C"), '') end
$$;
