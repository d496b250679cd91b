-- The pairs of pods of edges, and how many of their flows are stored; `own` and `peer` are the JSON of namespace and
-- name, `peer` is null where it is no pod. Each reporter is read once for all edges. Most flows are on a page of their
-- own, so no more than `max_flows` are read. The first conditions of the join are there to hash by.
create or replace function pod_pairs_of_edges(edges uuid[], max_flows bigint)
returns table (edge_id uuid, is_egress boolean, own text, peer text, flows bigint)
language sql stable
set enable_hashjoin = on
set work_mem = '32MB'
as $$
  with wanted as materialized (
    select e.* from unnest(edges) i(id) cross join lateral (select * from flow_edge e where e.id = i.id offset 0) e),
  reporters as materialized (
    select distinct r.pod_name from wanted e join flow_edge_pod r on r.edge_id = e.id order by r.pod_name),
  read as materialized (
    select f.*, t.pod_name as reporter, t.peer_name as peer_pod
    from (
      select t.*
      from reporters r
      cross join lateral (
        select t as flow, t.pod_name, t.peer_name from traffic t where t.pod_name = r.pod_name offset 0) t
      limit max_flows) t
    cross join lateral edge_of_flow(t.flow) f)
  select e.id, e.traffic_type = 'EGRESS', json_build_array(e.pod_namespace, f.reporter)::text,
         case when e.peer_kind = 'pod' then json_build_array(e.peer_namespace, f.peer_pod)::text end, f.flows
  from wanted e
  join (
    select f.traffic_type, f.pod_namespace, f.pod_workload_kind, f.pod_workload_name, f.pod_name, f.peer_kind,
           f.peer_namespace, f.peer_workload_kind, f.peer_workload_name, f.peer_name, f.traffic_in_out_ip, f.port,
           f.ip_protocol, f.decision, f.reporter, f.peer_pod, count(*) as flows
    from read f
    group by f.traffic_type, f.pod_namespace, f.pod_workload_kind, f.pod_workload_name, f.pod_name, f.peer_kind,
             f.peer_namespace, f.peer_workload_kind, f.peer_workload_name, f.peer_name, f.traffic_in_out_ip, f.port,
             f.ip_protocol, f.decision, f.reporter, f.peer_pod) f
    on f.traffic_type = e.traffic_type
    and concat_ws('/', f.port, f.pod_workload_name, f.peer_workload_name)
        = concat_ws('/', e.port, e.pod_workload_name, e.peer_workload_name)
    and row(f.pod_namespace, f.pod_workload_kind, f.pod_workload_name, f.pod_name, f.peer_kind, f.peer_namespace,
            f.peer_workload_kind, f.peer_workload_name, f.peer_name, f.traffic_in_out_ip, f.port, f.ip_protocol,
            f.decision)
        is not distinct from
        row(e.pod_namespace, e.pod_workload_kind, e.pod_workload_name, e.pod_name, e.peer_kind, e.peer_namespace,
            e.peer_workload_kind, e.peer_workload_name, e.peer_name, e.traffic_in_out_ip, e.port, e.ip_protocol,
            e.decision)
$$;
