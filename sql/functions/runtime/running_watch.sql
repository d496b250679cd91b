-- How the containers that run are watched now, by workload and container; of one namespace, or of all where it is null
-- (docs/contract.md#files-that-no-image-shipped). `reasons` has the reason of each instance that is not watched.
create or replace function running_watch(of_namespace text)
returns table (pod_namespace text, workload_kind text, workload_name text, container_name text, instances bigint,
               unwatched bigint, reasons text[])
language sql stable
set enable_hashjoin = on
set enable_seqscan = on
set work_mem = '32MB'
as $$
  select i.pod_namespace, i.workload_kind, i.workload_name, i.container, count(*), count(w.reason),
         array_remove(array_agg(w.reason), null)
  from (
    select p.pod_namespace, p.pod_name, case when o.is_known then p.workload_kind else 'Pod' end as workload_kind,
           case when o.is_known then p.workload_name else p.pod_name end as workload_name, r.container
    from pod p
    cross join lateral (
      select is_owned(p.workload_kind, p.workload_name) as is_known) o
    cross join lateral unnest(p.running_containers) r(container)
    where not p.is_dead and p.pod_namespace <> '' and (of_namespace is null or p.pod_namespace = of_namespace)) i
  left join (
    select c.pod_namespace, c.pod_name, c.container_name,
           case
             when not bool_or(t.is_timely) then 'capture_gap'
             when not bool_and(c.exec_probe) filter (where t.is_timely) then 'probes_missing'
             when not bool_and(c.lib_probe and c.mode = 'full') filter (where t.is_timely) then 'libraries_not_tracked'
             when bool_or(c.last_drop_at >= n.moment - interval '24 hours') filter (where t.is_timely)
               then 'events_dropped'
           end as reason
    from (select now() at time zone 'utc' as moment) n
    cross join runtime_coverage c
    cross join lateral (
      select c.last_heartbeat >= n.moment - make_interval(secs => 3 * c.heartbeat_secs + 60) as is_timely) t
    where not c.ended and c.cluster_id = 'primary' and (of_namespace is null or c.pod_namespace = of_namespace)
    group by 1, 2, 3) c
    on c.pod_namespace = i.pod_namespace and c.pod_name = i.pod_name and c.container_name = i.container
  cross join lateral (select case when c.pod_name is null then 'no_runtime_data' else c.reason end as reason) w
  group by 1, 2, 3, 4
$$;
