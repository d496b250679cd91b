-- What was seen of the network of workloads since a moment (Network exposure computation), by their place `n` in the three lists: flows of
-- their newest 50 pods, dead ones too, and the different peers of those that came in. A pod or service that is not known to be of the
-- same namespace is one of another.
create or replace function observed_networks(namespaces text[], kinds text[], names text[], since timestamp)
returns table (n bigint, pods bigint, flows bigint, ingress_flows bigint, other_namespaces bigint, unattributed bigint,
               public_ips bigint, nodes bigint)
language sql stable
set enable_hashjoin = on
as $$
  with workloads as materialized (
    select u.* from unnest(namespaces, kinds, names) with ordinality u(pod_namespace, workload_kind, workload_name, n)),
  held as materialized (
    select w.n, p.pod_name, p.time_stamp
    from (select distinct w.pod_namespace from workloads w) s
    join pod p on p.pod_namespace = s.pod_namespace
    join workloads w
      on w.pod_namespace = p.pod_namespace and w.workload_kind = p.workload_kind and w.workload_name = p.workload_name
    union
    select w.n, p.pod_name, p.time_stamp
    from workloads w
    join pod p on p.pod_name = w.workload_name and p.pod_namespace = w.pod_namespace
    where w.workload_kind = 'Pod'),
  newest as materialized (
    select h.n, h.pod_name
    from (select h.*, row_number() over (partition by h.n order by h.time_stamp desc, h.pod_name) as nth from held h) h
    where h.nth <= 50),
  seen as (
    select w.n, t.traffic_in_out_ip, t.peer_namespace, coalesce(t.peer_workload_name, t.peer_name) as peer_name,
           case when t.traffic_type is distinct from 'INGRESS' then 'egress'
                when t.peer_kind is null then 'unattributed'
                when t.peer_kind = 'node' then 'node'
                when t.peer_namespace = w.pod_namespace then 'own'
                else 'other' end as class
    from newest p
    join workloads w on w.n = p.n
    join traffic t on t.pod_name = p.pod_name and t.pod_namespace = w.pod_namespace and t.time_stamp >= since),
  peers as (
    select s.n, s.class, count(*) as flows,
           case s.class when 'other' then concat_ws('/', s.peer_namespace, s.peer_name)
                        when 'node' then s.traffic_in_out_ip
                        when 'unattributed' then s.traffic_in_out_ip end as peer
    from seen s
    group by s.n, s.class, peer)
  select w.n, p.pods, coalesce(f.flows, 0), coalesce(f.ingress_flows, 0), coalesce(f.other_namespaces, 0), coalesce(f.unattributed, 0),
         coalesce(f.public_ips, 0), coalesce(f.nodes, 0)
  from workloads w
  join (select w.n, count(p.n) as pods from workloads w left join newest p on p.n = w.n group by w.n) p on p.n = w.n
  left join (
    select p.n, sum(p.flows)::bigint as flows, (sum(p.flows) filter (where p.class <> 'egress'))::bigint as ingress_flows,
           count(p.peer) filter (where p.class = 'other') as other_namespaces,
           count(p.peer) filter (where p.class = 'unattributed') as unattributed,
           count(*) filter (where p.class = 'unattributed' and is_public_address(p.peer)) as public_ips,
           count(p.peer) filter (where p.class = 'node') as nodes
    from peers p
    group by p.n) f on f.n = w.n
$$;
