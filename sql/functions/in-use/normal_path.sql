-- A path as files are compared by. Most need no folding, and text functions tell so several times as fast as patterns;
-- SBOMs list paths without the first slash.
create or replace function normal_path(path text) returns text
language sql immutable parallel safe
as $$
  select case when strpos(path, '//') > 0 or strpos(path, '/.') > 0 or strpos(path, ' ') > 0
                   or left(path, 1) in ('', '.') or path like '%/' then fold_path(path)
              when starts_with(path, '/') then path
              else '/' || path end
$$;
