-- A path as files are compared by; most need no folding.
create or replace function normal_path(path text) returns text
language sql immutable parallel safe
as $$
  select case when path ~ '^/[^\s]*[^/\s]$' and path !~ '//|/\.{1,2}(/|$)' then path else fold_path(path) end
$$;
