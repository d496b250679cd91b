-- Whether the namespace has a pod of this name that is not dead. PL/pgSQL on purpose: as a subquery in is_running, it
-- would keep PostgreSQL from inlining that function.
create or replace function is_pod_alive(namespace text, name text) returns boolean
language plpgsql stable parallel safe
as $$
begin
  return exists (select from pod p where p.pod_name = name and p.pod_namespace = namespace and not p.is_dead);
end
$$;
