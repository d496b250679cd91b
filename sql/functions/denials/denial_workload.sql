-- The workload that the denials of a pod belong to: that of the pod's row, or the pod itself if it has neither kind nor
-- name of a workload. No row if unknown: no such pod, a pod of another namespace, or only one of kind and name. Blank
-- counts as missing, as in syscall sets. The limit, redundant for a key, makes the planner look up each pod whatever it
-- estimates.
create or replace function denial_workload(of_pod text, of_namespace text)
returns table (kind text, name text)
language sql stable parallel safe
as $$
  select case when w.is_owned then p.workload_kind else 'Pod' end, case when w.is_owned then p.workload_name
         else p.pod_name end
  from pod p
  cross join lateral (select coalesce(trimmed(p.workload_kind) <> '', false) as is_owned,
                      coalesce(trimmed(p.workload_name) <> '', false) as is_named) w
  where p.pod_name = of_pod
    and (p.pod_namespace = of_namespace or coalesce(trimmed(p.pod_namespace), '') = '')
    and w.is_owned = w.is_named
  limit 1
$$;
