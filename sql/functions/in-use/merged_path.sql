-- A normal path where directories of `/usr` that are one with those of `/` are named without `/usr`.
create or replace function merged_path(path text) returns text
language sql immutable parallel safe
as $$
  select case when path ~ '^/usr/(lib|lib64|bin|sbin)/' then substr(path, 5) else path end
$$;
