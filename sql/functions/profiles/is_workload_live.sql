-- Whether a pod of the workload is alive; a pod that was posted without its workload is one of its own. PL/pgSQL keeps
-- its plan, so that a list asks for each of its rows at the cost of two index look-ups.
create or replace function is_workload_live(namespace text, kind text, name text) returns boolean
language plpgsql stable parallel safe
as $$
begin
  return exists (select from pod p
                 where p.pod_namespace = namespace and p.workload_kind = kind and p.workload_name = name
                   and not p.is_dead)
      or kind = 'Pod' and exists (select from pod p
                                  where p.pod_name = name and p.pod_namespace = namespace and p.workload_kind is null
                                    and not p.is_dead);
end
$$;
