-- A public contract: `kg_runtime_coverage(cluster, namespace, kind, name, container, image_digest, window_hours)` says whether the runtime inventory
-- of a container of a workload holds everything that ran in it within so many hours (workload-profiling, Runtime coverage and heartbeat;
-- interop-profiling 2.5). Always one row:
--   covered         whether it does
--   observed_since  since when its running instances are watched, naive UTC; null where nothing was heard of it
--   reason          null when it is covered, else the first of these that is so: `no_runtime_data`, `probes_missing`, `libraries_not_tracked`,
--                   `events_dropped`, `events_pending`, `incomplete_paths`, `capture_gap`
-- The cluster is `primary`, a digest that is not known the empty text. It has the rights of who calls it, who must be able to read `pod`,
-- `runtime_coverage` and `runtime_executable`.
create or replace function kg_runtime_coverage(
  cluster text, namespace text, kind text, name text, container text, image_digest text, window_hours integer)
returns table (covered boolean, observed_since timestamp, reason text)
language sql stable
set search_path from current
as $$
  select c.container_name is not null and c.covered, c.observed_since, case when c.container_name is null then 'no_runtime_data' else c.reason end
  from (select) one
  left join runtime_coverage_of(
    $1, $2, $3, $4, coalesce($5, ''), coalesce($6, ''), $7) c on true
$$;
