-- A page of the files that ran and no image shipped, by the time they were first seen, the newest first, and how the
-- running containers are watched (docs/contract.md#files-that-no-image-shipped). The page begins after the key given,
-- whose parts are those of the order. At most `max_read` files are read; the key of the last of them ends a page that
-- is not full. The planner settings make it read them in the order of the index, whatever the planner estimates.
create or replace function unshipped_files(
  of_namespace text, since timestamp, is_image_running boolean, after_first timestamp, after_hash text,
  after_namespace text, after_kind text, after_workload text, after_container text, after_image text, after_entry text,
  retention_days integer, window_secs integer, max_rows integer, max_read integer)
returns table (items text, next_key json, watch text)
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_hashjoin = on
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_sort = off
as $$
#variable_conflict error
begin
  return query
  with walked as (
    select w.*, row_number() over (
             order by w.first_seen desc, w.path_hash desc, w.pod_namespace desc, w.workload_kind desc,
                      w.workload_name desc, w.container_name desc, w.image_digest desc, w.kind desc) as n
    from (
      select e.*
      from runtime_executable e
      where e.origin in ('deleted', 'writableLayer', 'memfd') and e.cluster_id = 'primary' and e.first_seen >= since
        and (e.first_seen, e.path_hash, e.pod_namespace, e.workload_kind, e.workload_name, e.container_name,
             e.image_digest, e.kind)
            < (after_first, decode(after_hash, 'hex'), after_namespace, after_kind, after_workload, after_container,
               after_image, after_entry)
      order by e.first_seen desc, e.path_hash desc, e.pod_namespace desc, e.workload_kind desc, e.workload_name desc,
               e.container_name desc, e.image_digest desc, e.kind desc
      limit max_read) w),
  picked as materialized (
    select w.*, r.is_running, m.is_match
    from walked w
    cross join lateral (
      select case
        when w.image_digest = '' then null
        else coalesce(
          (select is_running(c, window_secs) from workload_container c
           where c.pod_namespace = w.pod_namespace and c.workload_kind = w.workload_kind
             and c.workload_name = w.workload_name and c.container_name = w.container_name
             and c.image_digest = w.image_digest and c.cluster_id = w.cluster_id),
          case when exists (
            select from workload_container c
            where c.pod_namespace = w.pod_namespace and c.workload_kind = w.workload_kind
              and c.workload_name = w.workload_name and c.container_name = w.container_name
              and c.cluster_id = w.cluster_id) then false end)
      end as is_running) r
    cross join lateral (
      select (of_namespace is null or w.pod_namespace = of_namespace)
             and w.last_seen >= retention_start(retention_days)
             and (is_image_running is null or r.is_running is not distinct from is_image_running) as is_match) m
    where m.is_match or w.n = max_read
    order by w.n
    limit max_rows + 1),
  page as materialized (
    select p.* from (select p.*, row_number() over (order by p.n) as place from picked p) p where p.place <= max_rows),
  running as materialized (select r.* from running_watch(of_namespace) r),
  place as (
    select p.* from page p where (select count(*) from picked) > max_rows or p.n = max_read order by p.n desc limit 1)
  select
    (select '[' || coalesce(string_agg(row_to_json(r)::text, ',' order by p.n), '') || ']'
     from page p
     left join running w on w.pod_namespace = p.pod_namespace and w.workload_kind = p.workload_kind
       and w.workload_name = p.workload_name and w.container_name = p.container_name
     cross join lateral (
       select p.pod_namespace as "namespace", p.workload_kind as "workloadKind",
              p.workload_name as "workloadName", p.container_name as "containerName", p.image_digest as "imageDigest",
              p.path, p.path_complete as "pathComplete", p.kind, p.origin, p.source,
              wire_time(p.first_seen) || 'Z' as "firstSeen", wire_time(p.last_seen) || 'Z' as "lastSeen",
              p.last_pod_name as "lastPod", p.is_running as "imageRunning",
              case
                when p.is_running is not null then null
                when p.image_digest = '' then 'no_digest'
                else 'not_in_inventory' end as "imageRunningReason",
              coalesce(w.instances, 0) as "runningInstances", coalesce(w.unwatched, 0) as "unwatchedInstances",
              (select o.reason
               from unnest(array['no_runtime_data', 'probes_missing', 'libraries_not_tracked', 'events_dropped',
                                 'capture_gap']) with ordinality o(reason, rank)
               where o.reason = any (w.reasons)
               order by o.rank
               limit 1) as "watchReason") r
     where p.is_match),
    (select json_build_array(to_char(p.first_seen, 'YYYY-MM-DD"T"HH24:MI:SS.US'), encode(p.path_hash, 'hex'),
                             p.pod_namespace, p.workload_kind, p.workload_name, p.container_name, p.image_digest, p.kind)
     from place p),
    (select row_to_json(t)::text
     from (
       select coalesce(sum(r.instances), 0) as "runningInstances", coalesce(sum(r.unwatched), 0) as "unwatchedInstances",
              (select row_to_json(u)
               from (
                 select count(*) filter (where u.reason = 'no_runtime_data') as no_runtime_data,
                        count(*) filter (where u.reason = 'probes_missing') as probes_missing,
                        count(*) filter (where u.reason = 'libraries_not_tracked') as libraries_not_tracked,
                        count(*) filter (where u.reason = 'events_dropped') as events_dropped,
                        count(*) filter (where u.reason = 'capture_gap') as capture_gap
                 from running a
                 cross join lateral unnest(a.reasons) u(reason)) u) as reasons,
              (select count(*) from pod o
               where not o.is_dead and o.running_containers is null
                 and (of_namespace is null or o.pod_namespace = of_namespace)) as "podsWithoutContainerList",
              (select count(distinct (c.pod_namespace, c.pod_name))
               from (select now() at time zone 'utc' as moment) m
               join runtime_coverage c
                 on c.last_heartbeat >= m.moment - interval '24 hours'
                    and c.last_heartbeat < m.moment - make_interval(secs => 3 * c.heartbeat_secs + 60)
               cross join lateral (
                 select from pod o
                 where o.pod_name = c.pod_name and o.pod_namespace = c.pod_namespace and o.is_dead
                   and o.swept_at >= o.time_stamp
                 offset 0) o
               where not c.ended and c.cluster_id = 'primary'
                 and (of_namespace is null or c.pod_namespace = of_namespace)) as "silentPods"
       from running r) t);
end
$$;
