-- Notes the labels of pods whose first flow came before their first post, and forgets pods and addresses whose last
-- flow is so old that the pods of such flows are not known anyway (docs/contract.md#flow-queries), for the job
-- `flow-edges`. The caller holds the lock of the job. Returns how many rows changed.
create or replace function tend_flow_pods(at_once int) returns bigint
language sql strict
as $$
  with labelled as (
    update flow_pod p set is_labelled = true
    from (
      select p.pod_namespace, p.pod_name, p.workload_kind, p.workload_name
      from flow_pod p
      where not p.is_labelled and p.first_flow_at > clock_timestamp() at time zone 'utc' - interval '1 day'
        and exists (select from pod_labels l
                    where l.pod_namespace = p.pod_namespace and l.pod_name = p.pod_name and l.since <= p.first_flow_at
                    offset 0)
      order by p.first_flow_at desc
      limit at_once) f
    where (p.pod_namespace, p.pod_name, p.workload_kind, p.workload_name)
          = (f.pod_namespace, f.pod_name, f.workload_kind, f.workload_name)
    returning 1),
  forgotten as (
    delete from flow_pod p
    using (
      select p.pod_namespace, p.pod_name, p.workload_kind, p.workload_name
      from flow_edge_cursor c
      cross join lateral (
        -- the time of a last flow may be a day behind
        select p.* from flow_pod p where p.last_flow_at < c.complete_since - interval '1 day'
        order by p.last_flow_at
        limit at_once) p) f
    where (p.pod_namespace, p.pod_name, p.workload_kind, p.workload_name)
          = (f.pod_namespace, f.pod_name, f.workload_kind, f.workload_name)
    returning 1),
  forgotten_addresses as (
    delete from flow_address a
    using (
      select a.namespace, a.name, a.kind, a.address
      from flow_edge_cursor c
      cross join lateral (
        select a.* from flow_address a where a.last_flow_at < c.complete_since - interval '1 day'
        order by a.last_flow_at
        limit at_once) a) f
    where (a.namespace, a.name, a.kind, a.address) = (f.namespace, f.name, f.kind, f.address)
    returning 1)
  select (select count(*) from labelled) + (select count(*) from forgotten)
         + (select count(*) from forgotten_addresses)
$$;
