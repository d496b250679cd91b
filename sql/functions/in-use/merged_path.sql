-- A normal path where directories of `/usr` that are one with those of `/` are named without `/usr`.
create or replace function merged_path(path text) returns text
language sql immutable parallel safe
as $$
  select case when starts_with(path, '/usr/')
                   and (starts_with(path, '/usr/lib/') or starts_with(path, '/usr/lib64/')
                        or starts_with(path, '/usr/bin/') or starts_with(path, '/usr/sbin/'))
              then right(path, -4) else path end
$$;
