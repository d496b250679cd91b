-- An earlier form returned the node as well, and replacing a function cannot change its columns.
drop function if exists pod_of_flow(text);

-- The workload of a pod that flows name. It holds for flows of its namespace since its start
-- (docs/contract.md#attribution). A pod without an owner is its own workload, of the kind Pod; the workload of a pod
-- whose owner is not known yet is null.
create or replace function pod_of_flow(name text)
returns table (pod_namespace text, started_at timestamp, workload_kind text, workload_name text)
language sql stable parallel safe rows 1
as $$
  select p.pod_namespace, p.started_at,
         case when w.is_known then p.workload_kind when not p.has_owner then 'Pod' end,
         case when w.is_known then p.workload_name when not p.has_owner then p.pod_name end
  from pod p
  cross join lateral (select ltrim(p.workload_kind) <> '' and ltrim(p.workload_name) <> '' as is_known) w
  where p.pod_name = name
$$;
