-- A public contract: `kg_runtime_coverage(cluster, namespace, kind, name, container, image_digest, window_hours)` says
-- whether the runtime inventory of a container of a workload holds everything that ran in it within the last hours
-- (docs/contract.md#runtime-coverage). Always one row:
--   covered         whether it does
--   observed_since  since when its running instances are watched, naive UTC; null without any heartbeat
--   reason          null if covered, else the first of these that applies: `no_runtime_data`, `probes_missing`,
--                   `libraries_not_tracked`, `events_dropped`, `events_pending`, `incomplete_paths`, `capture_gap`
-- The cluster is `primary`; an unknown digest is the empty text. It runs with the caller's rights: the caller must be
-- able to read `pod`, `runtime_coverage` and `runtime_executable`.
create or replace function kg_runtime_coverage(
  cluster text, namespace text, kind text, name text, container text, image_digest text, window_hours integer)
returns table (covered boolean, observed_since timestamp, reason text)
language sql stable
set search_path from current
as $$
  select c.container_name is not null and c.covered, c.observed_since, case when c.container_name is null
         then 'no_runtime_data' else c.reason end
  from (select) one
  left join runtime_coverage_of(
    $1, $2, $3, $4, coalesce($5, ''), coalesce($6, ''), $7) c on true
$$;
