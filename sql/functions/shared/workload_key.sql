-- A text that identifies a workload and that `->>` can take apart; null where one of its parts is missing or blank.
create or replace function workload_key(namespace text, kind text, name text) returns text
language sql stable parallel safe
as $$
  select case when trimmed(namespace) <> '' and trimmed(kind) <> '' and trimmed(name) <> ''
              then json_build_array(namespace, kind, name)::text end
$$;
