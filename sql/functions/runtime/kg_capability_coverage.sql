-- A public contract: `kg_capability_coverage(cluster, namespace, kind, name, container, image_digest, window_hours)`
-- says whether every check of a capability in a container of a workload was seen within the last hours
-- (docs/contract.md#capabilities). Always one row, with the columns of `kg_runtime_coverage`; after its reasons come
-- `capabilities_not_tracked`, `capabilities_partial_hook` and `capabilities_not_seen_since_start`. It runs with the
-- caller's rights, and reads the same tables.
create or replace function kg_capability_coverage(
  cluster text, namespace text, kind text, name text, container text, image_digest text, window_hours integer)
returns table (covered boolean, observed_since timestamp, reason text)
language sql stable
set search_path from current
as $$
  select c.container_name is not null and c.reason is null, c.observed_since, case when c.container_name is null
         then 'no_runtime_data' else c.reason end
  from (select) one
  left join capability_coverage_of(
    $1, $2, $3, $4, coalesce($5, ''), coalesce($6, ''), $7) c on true
$$;
