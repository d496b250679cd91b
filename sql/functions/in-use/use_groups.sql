-- The containers of an image in the inventory, grouped by the reason why they were not watched (null if they were) and
-- by their exposure. All count as not watched where the use of the image is not current.
create or replace function use_groups(asked text)
returns table (reason text, exposure text, containers bigint, observed_since timestamp)
language sql stable
as $$
  with known as materialized (
    select case when u.image_digest is null then 'no_runtime_data' else u.reason end as reason, u.exposure,
           u.observed_since
    from workload_container w
    left join container_use u on u.image_digest = w.image_digest and u.pod_namespace = w.pod_namespace
      and u.workload_kind = w.workload_kind and u.workload_name = w.workload_name
      and u.container_name = w.container_name and u.cluster_id = w.cluster_id
    where w.image_digest = asked),
  links as materialized (
    select is_use_current(asked) as are_current where exists (select from known k where k.reason is null))
  select r.reason, k.exposure, count(*), max(k.observed_since) filter (where r.reason is null)
  from known k
  cross join lateral (
    select coalesce(k.reason, case when not (select l.are_current from links l) then 'capture_gap' end) as reason) r
  group by r.reason, k.exposure
$$;
