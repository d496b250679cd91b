-- How completely a workload is watched (docs/contract.md#runtime-coverage): a row per container and digest with a
-- heartbeat in the window, in the order of both. A null container or image matches any. `reason` is the first check
-- that fails. Hours below 0 count as 0, hours beyond any stored time as `max_hours`. The planner settings make it read
-- every table by its index, whoever calls it.
create or replace function runtime_coverage_of(
  cluster text, namespace text, kind text, name text, container text, image text, window_hours integer)
returns table (
  container_name text, image_digest text, instances bigint, last_heartbeat timestamp, mode text,
  libraries_tracked boolean, covered boolean,
  observed_since timestamp, reason text)
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
  -- `kind` is also a column of runtime_executable.
  of_kind constant text := kind;
  moment constant timestamp := now() at time zone 'utc';
  since constant timestamp := moment - make_interval(hours => least(greatest(window_hours, 0), max_hours));
begin
  return query
  with live as (
    select p.pod_name, p.running_containers
    from pod p
    where p.pod_namespace = namespace and p.workload_kind = of_kind and p.workload_name = name and not p.is_dead
    union all
    -- A pod without an owner is its own workload; an incomplete owner counts as none.
    select p.pod_name, p.running_containers
    from pod p
    where of_kind = 'Pod' and p.pod_name = name and p.pod_namespace = namespace and not p.is_dead
      and not is_owned(p.workload_kind, p.workload_name)),
  -- A null container stands for all: the pod runs nobody knows which, and nobody watches any of them.
  untracked as materialized (
    select distinct r.container
    from live l
    cross join lateral unnest(coalesce(l.running_containers, '{null}')) r(container)
    -- The fence (`offset 0`) forces a lookup per row, whatever the planner estimates of an empty table.
    where not exists (
      select from runtime_coverage c
      where c.pod_namespace = namespace and c.pod_name = l.pod_name
        and (r.container is null or c.container_name = r.container) and c.cluster_id = cluster
        and not c.ended and c.last_heartbeat >= moment - make_interval(secs => 3 * c.heartbeat_secs + 60)
      offset 0)),
  watched as (
    select c.container_name, c.image_digest, count(*) as instances, max(c.last_heartbeat) as last_heartbeat,
           (array_agg(c.mode order by c.last_heartbeat desc, c.container_id))[1] as mode,
           bool_and(c.exec_probe) as has_probe,
           bool_and(c.lib_probe and c.mode = 'full') as has_libraries,
           coalesce(max(c.last_drop_at) >= since, false) as has_drops,
           bool_or(c.unsent > 0) as has_unsent,
           bool_or(c.incomplete) as is_incomplete,
           bool_or(not c.ended and c.last_heartbeat < moment - make_interval(secs => 3 * c.heartbeat_secs + 60))
             as is_late,
           bool_or(c.covered_since > since and not (c.start_mode = 'start' and c.covered_since = c.tracking_since))
             as has_gap,
           -- Equal to tracking_since if the whole life was watched.
           min(c.covered_since) as observed_since
    from runtime_coverage c
    where c.pod_namespace = namespace and c.workload_kind = of_kind and c.workload_name = name
          and c.cluster_id = cluster
      and (container is null or c.container_name = container) and (image is null or c.image_digest = image)
      and c.last_heartbeat >= since
    group by c.container_name, c.image_digest)
  select w.container_name, w.image_digest, w.instances, w.last_heartbeat, w.mode, w.has_libraries, f.reason is null,
         w.observed_since, f.reason
  from watched w
  cross join lateral (
    select case
      when not w.has_probe then 'probes_missing'
      when not w.has_libraries then 'libraries_not_tracked'
      when w.has_drops then 'events_dropped'
      when w.has_unsent then 'events_pending'
      when w.is_incomplete
        or exists (
          select from runtime_executable e
          where e.pod_namespace = namespace and e.workload_kind = of_kind and e.workload_name = name
                and e.container_name = w.container_name
            and e.image_digest = w.image_digest and e.cluster_id = cluster and not e.path_complete)
        or exists (
          select from unattributed_files(cluster, namespace, of_kind, name, w.container_name, w.image_digest, since))
                then 'incomplete_paths'
      when w.is_late or w.has_gap or w.observed_since > since
        or exists (select from untracked u where u.container is null or u.container = w.container_name)
                then 'capture_gap'
    end as reason) f
  order by w.container_name, w.image_digest;
end
$$;
