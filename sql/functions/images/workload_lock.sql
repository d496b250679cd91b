-- The key of the advisory lock under which the containers of a workload are changed.
create or replace function workload_lock(namespace text, kind text, name text) returns bigint
language sql immutable parallel safe
as $$
  select hashtextextended(concat_ws(e'\x01', namespace, kind, name), 0)
$$;
