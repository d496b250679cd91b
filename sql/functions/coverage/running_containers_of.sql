-- The running containers of a workload, each container and image once (docs/contract.md#coverage-report): those of the
-- inventory, and with an empty digest those whose image is not resolved: a live pod runs the container and the
-- inventory has no running image of it, or it is watched without a known image.
create or replace function running_containers_of(namespace text, kind text, name text, window_secs integer)
returns table (container_name text, image_digest text)
language sql stable
as $$
  with known as materialized (
    select w.container_name, w.image_digest
    from workload_container w
    where w.pod_namespace = namespace and w.workload_kind = kind and w.workload_name = name and w.cluster_id = 'primary'
      and is_running(w, window_secs))
  select k.container_name, k.image_digest from known k
  union
  select r.container, ''
  from live_pods_of(namespace, kind, name) l
  cross join lateral unnest(l.running_containers) r(container)
  where not exists (select from known k where k.container_name = r.container)
  union
  select c.container_name, ''
  from runtime_coverage c
  where c.pod_namespace = namespace and c.workload_kind = kind and c.workload_name = name and c.image_digest = ''
    and c.cluster_id = 'primary' and not c.ended and is_heartbeat_current(c.last_heartbeat, c.heartbeat_secs)
$$;
