-- The known use of packages of an image, by name: whether the list of their files is cut (absent without a list) or has
-- a file that another program reads, and the strongest state of the containers that ran a file of them, of each
-- exposure: 0 executed, 1 loaded. Null if nothing is known of any. The containers are joined once, with hash joins even
-- in sessions of look-ups: an image may run in thousands of them.
create or replace function packages_in_use(asked text, names text[]) returns jsonb
language sql stable
set enable_hashjoin = on
set enable_nestloop = off
set enable_sort = off
set enable_bitmapscan = on
as $$
  with containers as materialized (
    select w.pod_namespace, w.workload_kind, w.workload_name, w.container_name, w.cluster_id, u.exposure
    from workload_container w
    left join container_use u on u.image_digest = w.image_digest and u.pod_namespace = w.pod_namespace
      and u.workload_kind = w.workload_kind and u.workload_name = w.workload_name
      and u.container_name = w.container_name and u.cluster_id = w.cluster_id
    where w.image_digest = asked),
  used as materialized (
    select p.package_name, u.exposure, min(case when p.is_executed then 0 else 1 end) as state
    from package_use p
    join containers u on u.pod_namespace = p.pod_namespace and u.workload_kind = p.workload_kind
      and u.workload_name = p.workload_name and u.container_name = p.container_name and u.cluster_id = p.cluster_id
    where p.image_digest = asked and p.package_name = any (names)
    group by p.package_name, u.exposure),
  listed as materialized (
    select l.package_name, l.is_cut, l.is_interpreted
    from (select w.name as package_name, false as is_cut, false as is_interpreted
          from summary_image s cross join lateral unnest(s.whole_packages) w(name) where s.image_digest = asked
          union all
          select c.name, true, false
          from summary_image s cross join lateral unnest(s.cut_packages) c(name) where s.image_digest = asked
          union all
          select i.name, true, true
          from summary_image s cross join lateral unnest(s.interpreted_packages) i(name)
          where s.image_digest = asked) l
    join (select distinct n.name from unnest(names) n(name)) n on n.name = l.package_name)
  select jsonb_object_agg(p.package_name, jsonb_build_object(
    'isCut', p.is_cut, 'isInterpreted', p.is_interpreted, 'exposed', p.exposed, 'unknown', p.unknown,
    'nodeOnly', p.node_only, 'internal', p.internal))
  from (
    select k.package_name, bool_or(k.is_cut) as is_cut, bool_or(k.is_interpreted) as is_interpreted,
           min(k.state) filter (where k.exposure = 'exposed') as exposed,
           min(k.state) filter (where k.exposure is null) as unknown,
           min(k.state) filter (where k.exposure = 'node_only') as node_only,
           min(k.state) filter (where k.exposure = 'internal') as internal
    from (select l.package_name, l.is_cut, l.is_interpreted, null as exposure, null::integer as state from listed l
          union all
          select u.package_name, null, null, u.exposure, u.state from used u) k
    group by k.package_name) p
$$;
