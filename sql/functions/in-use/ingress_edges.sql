-- The edges of connections that were opened to the pods of a workload, also of flows that were stored before the
-- workload of their pod was known. `offset 0` has the latter looked up for each pod.
create or replace function ingress_edges(namespace text, kind text, name text) returns setof flow_edge
language sql stable
as $$
  select e.*
  from flow_edge e
  where e.pod_namespace = namespace and e.pod_workload_kind = kind and e.pod_workload_name = name
    and e.traffic_type = 'INGRESS'
  union all
  select e.*
  from pod p
  cross join lateral (
    select e.* from flow_edge e
    where e.pod_namespace = namespace and e.pod_workload_kind is null and e.pod_workload_name is null
      and e.pod_name = p.pod_name and e.traffic_type = 'INGRESS'
    offset 0) e
  where p.pod_namespace = namespace and p.workload_kind = kind and p.workload_name = name
$$;
