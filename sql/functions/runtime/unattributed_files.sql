-- The files that may have run in a container and image of a workload since a time, but are stored elsewhere, the newest
-- first: they were posted before the agent knew the image or the workload, and not again since. A file without an image
-- may be of any image of the container; a file of a pod is of the workload that the pod turned out to belong to.
create or replace function unattributed_files(
  cluster text, namespace text, of_kind text, of_name text, container text, image text, since timestamp)
returns table (pod_name text, last_seen timestamp)
language sql stable
as $$
  select f.last_pod_name, f.last_seen
  from (
    select e.*
    from runtime_executable e
    where image <> '' and e.pod_namespace = namespace and e.workload_kind = of_kind and e.workload_name = of_name
      and e.container_name = container and e.image_digest = '' and e.cluster_id = cluster and e.last_seen >= since
    union all
    select e.*
    from runtime_executable e
    where of_kind <> 'Pod' and e.pod_namespace = namespace and e.workload_kind = 'Pod'
      and e.workload_name = any (array(
        select c.pod_name
        from runtime_coverage c
        where c.pod_namespace = namespace and c.workload_kind = of_kind and c.workload_name = of_name
          and c.cluster_id = cluster and c.container_name = container and c.image_digest = image
          and c.last_heartbeat >= since))
      and e.container_name = container and e.image_digest in ('', image) and e.cluster_id = cluster
      and e.last_seen >= since) f
  where not exists (
    select from runtime_executable e
    where e.pod_namespace = namespace and e.workload_kind = of_kind and e.workload_name = of_name
      and e.container_name = container and e.image_digest = image and e.kind = f.kind and e.path_start = f.path_start
      and e.path_hash = f.path_hash and e.cluster_id = cluster)
  order by f.last_seen desc, f.kind, f.path
$$;
