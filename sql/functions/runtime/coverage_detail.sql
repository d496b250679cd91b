-- The row that decided why a container and image is not covered (docs/contract.md#reason-details), as JSON: `cause`,
-- the container, its pod and node, and the time since when, null for what no row has. `reason` is that of
-- `runtime_coverage_of` or `capability_coverage_of` for the same arguments. Null without a reason, and where no single
-- row decided. It is a function of its own, so that those who judge all containers do not pay for it. Of several rows
-- the one with the latest time is named; `silent` is the one that has been so for the longest time.
create or replace function coverage_detail(
  cluster text, namespace text, kind text, name text, container text, image text, window_hours integer, reason text)
returns json
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict error
declare
  max_hours constant integer := 50000000;
  of_kind constant text := kind;
  since constant timestamp := now() at time zone 'utc'
    - make_interval(hours => least(greatest(window_hours, 0), max_hours));
  detail json;
begin
  if reason is null then
    return null;
  end if;

  -- A container that was watched.
  select coverage_detail_json(d.cause, d.container_id, d.pod_name, d.node_name, d.at) into detail
  from (
    select f.*, c.container_id, c.pod_name, c.node_name
    from runtime_coverage c
    cross join lateral (
      select not c.ended and not is_heartbeat_current(c.last_heartbeat, c.heartbeat_secs) as is_silent,
             c.covered_since > since and not (c.start_mode = 'start' and c.covered_since = c.tracking_since) as has_gap,
             coalesce(c.last_gap, 'late_start') as gap,
             greatest(c.covered_since, c.cap_since) as cap_seen_since) s
    cross join lateral (
      select 0 as place, 'exec_probe_missing' as cause, c.covered_since as at
      where reason = 'probes_missing' and not c.exec_probe
      union all
      select 0, case when c.lib_probe then 'mode_exec' else 'library_probe_missing' end, c.covered_since
      where reason = 'libraries_not_tracked' and not (c.lib_probe and c.mode = 'full')
      union all
      select 0, 'events_dropped', c.last_drop_at where reason = 'events_dropped' and c.last_drop_at >= since
      union all
      select 0, 'events_unsent', c.last_heartbeat where reason = 'events_pending' and c.unsent > 0
      union all
      select 0, 'inventory_incomplete', c.last_heartbeat where reason = 'incomplete_paths' and c.incomplete
      union all
      select 0, 'silent', c.last_heartbeat where reason = 'capture_gap' and s.is_silent
      union all
      select 1, s.gap, c.covered_since where reason = 'capture_gap' and s.has_gap
      union all
      select 0, 'capability_probe_missing', s.cap_seen_since
      where reason = 'capabilities_not_tracked' and not coalesce(c.cap_probe, false)
      union all
      select 0, 'capability_hook_partial', s.cap_seen_since
      where reason = 'capabilities_partial_hook' and c.cap_hook is distinct from 'cap_capable'
      union all
      select 0,
             case when c.start_mode <> 'start' then 'late_start'
                  when c.covered_since <> c.tracking_since then s.gap
                  else 'capability_probe_change' end,
             s.cap_seen_since
      where reason = 'capabilities_not_seen_since_start'
        and not (c.start_mode = 'start' and c.covered_since = c.tracking_since
                 and coalesce(c.cap_since <= c.covered_since, false))) f
    where c.pod_namespace = namespace and c.workload_kind = of_kind and c.workload_name = name
      and c.container_name = container and c.image_digest = image and c.cluster_id = cluster
      and c.last_heartbeat >= since
    order by f.place, case when f.cause = 'silent' then f.at end, f.at desc, c.container_id
    limit 1) d;
  if found then
    return detail;
  end if;

  -- A pod that runs the container, which nobody watches.
  if reason = 'capture_gap' then
    select coverage_detail_json('unwatched_pod', u.container_id, u.pod_name, u.node_name, u.last_heartbeat) into detail
    from (
      select l.pod_name, l.node_name, o.container_id, o.last_heartbeat
      from live_pods_of(namespace, of_kind, name) l
      left join lateral (
        select c.container_id, c.last_heartbeat, c.ended, c.heartbeat_secs
        from runtime_coverage c
        where c.pod_namespace = namespace and c.pod_name = l.pod_name and c.container_name = container
          and c.cluster_id = cluster
        order by c.ended, c.last_heartbeat desc, c.container_id
        limit 1) o on true
      where (l.running_containers is null or container = any (l.running_containers))
        and not exists (
          select from runtime_coverage c
          where c.pod_namespace = namespace and c.pod_name = l.pod_name
            and (l.running_containers is null or c.container_name = container)
            and c.cluster_id = cluster and not c.ended and is_heartbeat_current(c.last_heartbeat, c.heartbeat_secs)
          offset 0)
      order by l.pod_name
      limit 1) u;
    if found then
      return detail;
    end if;

    -- All that is left is that the watch is younger than the window.
    select coverage_detail_json('watched_since', c.container_id, c.pod_name, c.node_name, c.covered_since) into detail
    from runtime_coverage c
    where c.pod_namespace = namespace and c.workload_kind = of_kind and c.workload_name = name
      and c.container_name = container and c.image_digest = image and c.cluster_id = cluster
      and c.last_heartbeat >= since
    order by c.covered_since, c.container_id
    limit 1;
    return detail;
  end if;

  if reason = 'incomplete_paths' then
    select coverage_detail_json('path_cut', null, e.last_pod_name, null, e.last_seen) into detail
    from runtime_executable e
    where e.pod_namespace = namespace and e.workload_kind = of_kind and e.workload_name = name
      and e.container_name = container and e.image_digest = image and e.cluster_id = cluster and not e.path_complete
    order by e.last_seen desc, e.kind, e.path
    limit 1;
    if found then
      return detail;
    end if;
    select coverage_detail_json('unattributed_file', null, f.pod_name, null, f.last_seen) into detail
    from unattributed_files(cluster, namespace, of_kind, name, container, image, since) f
    limit 1;
    return detail;
  end if;

  -- Nobody watched it in the window: who did last, else the pod that runs it.
  if reason = 'no_runtime_data' then
    select coverage_detail_json('last_heartbeat', c.container_id, c.pod_name, c.node_name, c.last_heartbeat)
    into detail
    from runtime_coverage c
    where c.pod_namespace = namespace and c.workload_kind = of_kind and c.workload_name = name
      and c.container_name = container and c.image_digest = image and c.cluster_id = cluster
    order by c.last_heartbeat desc, c.container_id
    limit 1;
    if found then
      return detail;
    end if;
    select coverage_detail_json('never_watched', null, l.pod_name, l.node_name, null) into detail
    from live_pods_of(namespace, of_kind, name) l
    where container = any (l.running_containers)
    order by not exists (
               select from workload_container w
               where w.pod_namespace = namespace and w.workload_kind = of_kind and w.workload_name = name
                 and w.container_name = container and w.image_digest = image and w.cluster_id = cluster
                 and w.last_pod_name = l.pod_name), l.pod_name
    limit 1;
    return detail;
  end if;
  return null;
end
$$;
