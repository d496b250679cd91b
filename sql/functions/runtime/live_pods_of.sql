-- The pods of a workload that are not dead. A pod without an owner is its own workload; an incomplete owner counts as
-- none.
create or replace function live_pods_of(namespace text, kind text, name text)
returns table (pod_name text, node_name text, running_containers text[])
language sql stable parallel safe
as $$
  select p.pod_name, p.node_name, p.running_containers
  from pod p
  where p.pod_namespace = namespace and p.workload_kind = kind and p.workload_name = name and not p.is_dead
  union all
  select p.pod_name, p.node_name, p.running_containers
  from pod p
  where kind = 'Pod' and p.pod_name = name and p.pod_namespace = namespace and not p.is_dead
    and not is_owned(p.workload_kind, p.workload_name)
$$;
