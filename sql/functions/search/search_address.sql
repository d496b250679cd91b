-- The holders of an address: pods, the node whose network a pod uses, and a service; without one, the address itself
-- with the workloads whose flows had it as their peer (docs/contract.md#search).
create or replace function search_address(asked text, max_looked integer, max_peers integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable strict
as $$
  with pods as materialized (
    select p.*
    from pod_address a
    cross join lateral (select p.* from pod p where p.pod_name = a.pod_name offset 0) p
    where a.ip = asked
    order by p.is_dead, p.pod_name
    limit max_looked),
  services as materialized (
    select s.* from service s where s.svc_ip = asked),
  edges as materialized (
    select e.pod_namespace, coalesce(e.pod_workload_kind, 'Pod') as kind,
           coalesce(e.pod_workload_name, e.pod_name) as name, sum(e.flows)::bigint as flows,
           bool_or(e.is_public) as is_public, wire_time(max(e.last_new_at)) as last_new_at
    from flow_edge e
    where e.traffic_in_out_ip = asked and not exists (select from services)
      and not exists (select from pods p where not p.is_dead)
    group by 1, 2, 3)
  select not p.is_dead, 0, p.pod_name, json_build_object(
           'type', 'pod', 'namespace', p.pod_namespace, 'name', p.pod_name, 'node', p.node_name, 'address', p.pod_ip,
           'workloadKind', p.workload_kind, 'workloadName', p.workload_name)
  from pods p
  union all
  select true, 0, n.node_name, json_build_object('type', 'node', 'name', n.node_name)
  from (select distinct p.node_name from pods p where p.host_network and not p.is_dead) n
  union all
  select null, 0, concat_ws('/', s.svc_namespace, s.svc_name, s.svc_ip), json_build_object(
           'type', 'service', 'namespace', s.svc_namespace, 'name', s.svc_name, 'address', s.svc_ip)
  from services s
  union all
  select null, 0, asked, json_build_object(
           'type', 'address', 'address', asked, 'public', bool_or(e.is_public),
           'lastNewAt', max(e.last_new_at), 'peers', (
             select json_agg(json_build_object('namespace', k.pod_namespace, 'kind', k.kind, 'name', k.name,
                                               'flows', k.flows))
             from (select k.* from edges k order by k.flows desc, k.pod_namespace, k.kind, k.name limit max_peers) k),
           'peerCount', count(*))
  from edges e
  having count(*) > 0
$$;
