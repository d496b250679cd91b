-- The workload that a denial of a pod belongs to: that of the pod's row, or the pod itself where it has neither kind nor name of one
-- (interop-profiling 1.9). No row: it cannot be told, since the pod is not known, is one of another namespace, or has only one of the two.
-- What is blank is as if it were not there. The limit, which the key makes vain, has the planner look up each pod, whatever it believes of the table.
create or replace function denial_workload(of_pod text, of_namespace text)
returns table (kind text, name text)
language sql stable parallel safe
as $$
  select coalesce(nullif(btrim(p.workload_kind), ''), 'Pod'), coalesce(nullif(btrim(p.workload_name), ''), p.pod_name)
  from pod p
  where p.pod_name = of_pod
    and (p.pod_namespace = of_namespace or nullif(btrim(p.pod_namespace), '') is null)
    and (nullif(btrim(p.workload_kind), '') is null) = (nullif(btrim(p.workload_name), '') is null)
  limit 1
$$;
