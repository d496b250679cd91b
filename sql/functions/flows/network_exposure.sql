-- The network exposure of workloads since a moment (docs/contract.md#findings), `n` is the position in the three lists:
-- counts of the flows of their newest 50 pods, dead ones included, and of the distinct peers of ingress flows. A pod or
-- service that is not known to be in the same namespace counts as one of another namespace. `unknown_flows` came in
-- from peers without an address: no peer count includes them.
-- The flows of all pods are read in one pass in the order of the table; pod by pod, each flow would cost a page.
-- "offset 0" keeps that scan apart from the join with the pods and has the class of a flow computed once.
create or replace function network_exposure(namespaces text[], kinds text[], names text[], since timestamp)
returns table (n bigint, pods bigint, flows bigint, ingress_flows bigint, other_namespaces bigint, unattributed bigint,
               public_ips bigint, nodes bigint, unknown_flows bigint)
language sql stable
set enable_bitmapscan = on
set enable_indexscan = off
set enable_hashjoin = on
set enable_nestloop = off
set enable_sort = off
as $$
  with workloads as materialized (
    select u.* from unnest(namespaces, kinds, names) with ordinality u(pod_namespace, workload_kind, workload_name, n)),
  held as materialized (
    select w.n, p.pod_namespace, p.pod_name, p.time_stamp
    from (select p.* from pod p where p.pod_namespace = any (namespaces) offset 0) p
    join workloads w
      on w.pod_namespace = p.pod_namespace and w.workload_kind = p.workload_kind and w.workload_name = p.workload_name
    union
    select w.n, p.pod_namespace, p.pod_name, p.time_stamp
    from (select p.* from pod p where p.pod_name = any (names) offset 0) p
    join workloads w
      on w.pod_namespace = p.pod_namespace and w.workload_kind = 'Pod' and w.workload_name = p.pod_name),
  newest as materialized (
    select h.*
    from (select h.*, row_number() over (partition by h.n order by h.time_stamp desc, h.pod_name) as nth from held h) h
    where h.nth <= 50),
  seen as (
    select p.n, t.traffic_in_out_ip, t.peer_namespace, coalesce(t.peer_workload_name, t.peer_name) as peer_name,
           case when t.traffic_type is distinct from 'INGRESS' then 'egress'
                when t.peer_kind is null then 'unattributed'
                when t.peer_kind = 'node' then 'node'
                when t.peer_namespace = p.pod_namespace then 'own'
                else 'other' end as class
    from (select t.* from traffic t
          where t.pod_name = any (array(select p.pod_name from newest p)) and t.time_stamp >= since offset 0) t
    join newest p on p.pod_name = t.pod_name and p.pod_namespace = t.pod_namespace
    offset 0),
  peers as (
    select s.n, s.class, count(*) as flows,
           case when s.class = 'other' then s.peer_namespace end as namespace,
           case when s.class = 'other' then s.peer_name when s.class in ('unattributed', 'node')
             then s.traffic_in_out_ip end as peer
    from seen s
    group by s.n, s.class, namespace, peer),
  counted as (
    select p.n, sum(p.flows)::bigint as flows, (sum(p.flows)
                                                filter (where p.class <> 'egress'))::bigint as ingress_flows,
           count(*) filter (where p.class = 'other') as other_namespaces,
           count(p.peer) filter (where p.class = 'unattributed') as unattributed,
           count(*) filter (where p.class = 'unattributed' and is_public_address(p.peer)) as public_ips,
           count(p.peer) filter (where p.class = 'node') as nodes,
           (sum(p.flows) filter (where p.class in ('unattributed', 'node') and p.peer is null))::bigint as unknown_flows
    from peers p
    group by p.n)
  select w.n, coalesce(p.pods, 0), coalesce(c.flows, 0), coalesce(c.ingress_flows, 0), coalesce(c.other_namespaces, 0),
         coalesce(c.unattributed, 0), coalesce(c.public_ips, 0), coalesce(c.nodes, 0), coalesce(c.unknown_flows, 0)
  from workloads w
  left join (select p.n, count(*) as pods from newest p group by p.n) p on p.n = w.n
  left join counted c on c.n = w.n
$$;
