-- A plain package URL without its version, which begins at the first `@` that does not follow a slash: there it begins
-- a scope.
create or replace function without_version(plain text) returns text
language sql immutable parallel safe
as $$
  select case when strpos(plain, '/@') = 0 then split_part(plain, '@', 1)
              else coalesce(substring(plain from '^(.*?[^/])@'), plain) end
$$;
