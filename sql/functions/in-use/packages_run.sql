-- The packages of images of which a container executed or loaded a file (docs/contract.md#in-use). The last three lists
-- are the rows of `package_files` for these images. A file belongs to all packages that list its path; else to those
-- that list it in a directory that may be the same (`merged_path`); else to those that list a link that names a
-- library. Only hash joins: the planner does not know how many links a library has.
create or replace function packages_run(images text[], listed_images bigint[], listed_packages text[],
                                         listed_paths text[])
returns table (image_digest text, package_name text, pod_namespace text, workload_kind text, workload_name text,
               container_name text, cluster_id text, is_executed boolean)
language sql stable
set enable_hashjoin = on
set enable_mergejoin = off
set enable_nestloop = off
set work_mem = '64MB'
as $$
  with ran as materialized (
    select i.image, e.pod_namespace, e.workload_kind, e.workload_name, e.container_name, e.cluster_id,
           e.kind = 'exec' as is_executed, e.path
    from runtime_executable e
    join unnest(images) with ordinality i(digest, image) on i.digest = e.image_digest
    where e.image_digest = any (images) and e.image_digest <> '' and e.path_complete and e.origin <> 'memfd'),
  files as materialized (
    select f.*, merged_path(f.normal) as merged
    from (select r.image, r.path, normal_path(r.path) as normal
          from (select r.image, r.path from ran r group by r.image, r.path) r
          offset 0) f),
  names as (
    select f.image, f.path, f.normal, f.merged as name, false as is_link from files f
    union all
    select f.image, f.path, null, n.name, true
    from files f cross join lateral link_names(f.merged) n(name)
    where strpos(f.merged, '.so.') > 0),
  found as (
    select n.image, n.path, l.package_name,
           case when n.is_link then 3 when l.normal = n.normal then 1 else 2 end as rank
    from names n
    join (select l.image, l.package_name, l.normal, merged_path(l.normal) as merged
          from unnest(listed_images, listed_packages, listed_paths) l(image, package_name, normal)) l
      on l.image = n.image and l.merged = n.name),
  owners as (
    select distinct o.image, o.path, o.package_name
    from (select f.*, min(f.rank) over (partition by f.image, f.path) as first_rank from found f) o
    where o.rank = o.first_rank)
  select images[u.image], u.package_name, u.pod_namespace, u.workload_kind, u.workload_name, u.container_name,
         u.cluster_id, u.is_executed
  from (select o.image, o.package_name, r.pod_namespace, r.workload_kind, r.workload_name, r.container_name,
               r.cluster_id, bool_or(r.is_executed) as is_executed
        from owners o
        join ran r on r.image = o.image and r.path = o.path
        group by o.image, o.package_name, r.pod_namespace, r.workload_kind, r.workload_name, r.container_name,
                 r.cluster_id) u
$$;
