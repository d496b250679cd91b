-- Whether the checks of capabilities in a workload were all seen (docs/contract.md#capabilities): a row per container
-- and digest with a heartbeat in the window. A null container or image matches any. `reason` is the first check that
-- fails: first those of the runtime coverage, then those of the probe for capabilities. `observed_since` is since when
-- its running instances are watched with an unchanged probe.
create or replace function capability_coverage_of(
  cluster text, namespace text, kind text, name text, container text, image text, window_hours integer)
returns table (container_name text, image_digest text, observed_since timestamp, reason text)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict error
declare
  max_hours constant integer := 50000000;
  since constant timestamp := now() at time zone 'utc'
    - make_interval(hours => least(greatest(window_hours, 0), max_hours));
begin
  return query
  select r.container_name, r.image_digest, w.observed_since,
         case
           when r.reason is not null then r.reason
           when not w.has_probe then 'capabilities_not_tracked'
           when not w.has_whole_hook then 'capabilities_partial_hook'
           when not w.is_since_start then 'capabilities_not_seen_since_start'
         end
  from runtime_coverage_of(cluster, namespace, kind, name, container, image, window_hours) r
  join (
    select c.container_name, c.image_digest,
           bool_and(coalesce(c.cap_probe, false)) as has_probe,
           bool_and(coalesce(c.cap_hook = 'cap_capable', false)) as has_whole_hook,
           bool_and(c.start_mode = 'start' and c.covered_since = c.tracking_since
                    and coalesce(c.cap_since <= c.covered_since, false)) as is_since_start,
           min(greatest(c.covered_since, c.cap_since)) as observed_since
    from runtime_coverage c
    where c.pod_namespace = namespace and c.workload_kind = kind and c.workload_name = name and c.cluster_id = cluster
      and (container is null or c.container_name = container) and (image is null or c.image_digest = image)
      and c.last_heartbeat >= since
    group by c.container_name, c.image_digest) w
    on w.container_name = r.container_name and w.image_digest = r.image_digest;
end
$$;
