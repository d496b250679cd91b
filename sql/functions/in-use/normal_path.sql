-- A path as files are compared by. Most need no folding, and text functions tell so several times as fast as patterns.
create or replace function normal_path(path text) returns text
language sql immutable parallel safe
as $$
  select case when starts_with(path, '/') and strpos(path, '//') = 0 and strpos(path, '/.') = 0
                   and right(path, 1) not in ('/', ' ') then path
              else fold_path(path) end
$$;
