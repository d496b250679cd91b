-- A normal path by which directories are compared that may be one: those of `/usr` with those of `/`, on some systems
-- also `sbin` with `bin` and `lib64` with `lib`. It is one expression, so that PostgreSQL inlines it.
create or replace function merged_path(path text) returns text
language sql immutable parallel safe
as $$
  select case
    when starts_with(path, '/usr/') then
      case when starts_with(path, '/usr/sbin/') then '/bin/' || right(path, -10)
           when starts_with(path, '/usr/lib64/') then '/lib/' || right(path, -11)
           when split_part(path, '/', 3) in ('bin', 'lib', 'lib32', 'libx32') then right(path, -4)
           else path end
    when starts_with(path, '/sbin/') then '/bin/' || right(path, -6)
    when starts_with(path, '/lib64/') then '/lib/' || right(path, -7)
    else path end
$$;
