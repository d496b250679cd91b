-- Whether there is such a pod in the namespace that is not dead. Apart from is_running, which with a subquery in it would be
-- called for each row instead of becoming a part of the statement.
create or replace function is_pod_alive(namespace text, name text) returns boolean
language plpgsql stable parallel safe
as $$
begin
  return exists (select from pod p where p.pod_name = name and p.pod_namespace = namespace and not p.is_dead);
end
$$;
