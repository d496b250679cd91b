-- The workload that a denial of a pod belongs to: that of the pod's row, or the pod itself where it has neither kind nor name of one
-- (interop-profiling 1.9). No row: it cannot be told, since the pod is not known, is one of another namespace, or has only one of the two.
-- What is blank is as if it were not there, and what is not is as it stands, as in unions: `trimmed` judges both. The limit, which the key makes
-- vain, has the planner look up each pod, whatever it believes of the table.
create or replace function denial_workload(of_pod text, of_namespace text)
returns table (kind text, name text)
language sql stable parallel safe
as $$
  select case when w.is_owned then p.workload_kind else 'Pod' end, case when w.is_owned then p.workload_name else p.pod_name end
  from pod p
  cross join lateral (select coalesce(trimmed(p.workload_kind) <> '', false) as is_owned, coalesce(trimmed(p.workload_name) <> '', false) as is_named) w
  where p.pod_name = of_pod
    and (p.pod_namespace = of_namespace or coalesce(trimmed(p.pod_namespace), '') = '')
    and w.is_owned = w.is_named
  limit 1
$$;
