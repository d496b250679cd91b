-- The packages of images of which a container executed or loaded a file (docs/contract.md#in-use). The last three lists
-- are the rows of `listed_files` for these images. A file belongs to
-- all packages that list its path; else to those that list it with or without `/usr`; else to those that list a link
-- by which libraries are named.
create or replace function packages_used(images text[], listed_images text[], listed_packages text[],
                                         listed_paths text[])
returns table (image_digest text, package_name text, pod_namespace text, workload_kind text, workload_name text,
               container_name text, cluster_id text, is_executed boolean)
language sql stable
set enable_hashjoin = on
set enable_nestloop = off
set work_mem = '64MB'
as $$
  with ran as materialized (
    select e.image_digest, e.pod_namespace, e.workload_kind, e.workload_name, e.container_name, e.cluster_id,
           e.kind = 'exec' as is_executed, e.path
    from runtime_executable e
    where e.image_digest = any (images) and e.image_digest <> '' and e.path_complete and e.origin <> 'memfd'),
  files as materialized (
    select f.*, merged_path(f.normal) as merged
    from (select r.image_digest, r.path, normal_path(r.path) as normal
          from (select r.image_digest, r.path from ran r group by r.image_digest, r.path) r
          offset 0) f),
  listed as materialized (
    select distinct l.image_digest, l.package_name, l.normal, merged_path(l.normal) as merged
    from unnest(listed_images, listed_packages, listed_paths) l(image_digest, package_name, normal)),
  names as materialized (
    select f.image_digest, f.path, f.normal, f.merged as name, false as is_link from files f
    union all
    select f.image_digest, f.path, null, n.name, true from files f cross join lateral link_names(f.merged) n(name)),
  found as materialized (
    select n.image_digest, n.path, l.package_name,
           case when n.is_link then 3 when l.normal = n.normal then 1 else 2 end as rank
    from names n
    join listed l on l.image_digest = n.image_digest and l.merged = n.name),
  owners as materialized (
    select distinct o.image_digest, o.path, o.package_name
    from (select f.*, min(f.rank) over (partition by f.image_digest, f.path) as first_rank from found f) o
    where o.rank = o.first_rank)
  select o.image_digest, o.package_name, r.pod_namespace, r.workload_kind, r.workload_name, r.container_name,
         r.cluster_id, bool_or(r.is_executed)
  from owners o
  join ran r on r.image_digest = o.image_digest and r.path = o.path
  group by o.image_digest, o.package_name, r.pod_namespace, r.workload_kind, r.workload_name, r.container_name,
           r.cluster_id
$$;
