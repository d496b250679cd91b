-- A plain package URL without its version, which begins at the last `@` of the last segment; a segment that begins with
-- `@` is a scope.
create or replace function without_version(plain text) returns text
language sql immutable parallel safe
as $$
  select case when strpos(split_part(plain, '/', -1), '@') > 1
              then left(plain, -1 - length(split_part(plain, '@', -1))) else plain end
$$;
