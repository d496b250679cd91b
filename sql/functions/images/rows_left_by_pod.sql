-- The rows that name a pod of which the same container now belongs to another workload or has another image, or none
-- yet; with the key of the lock of each. `offset 0`: as part of a join, a plan that was cached while the table was
-- empty would stay a scan of it.
create or replace function rows_left_by_pod(namespace text, pod text, container text, kind text, name text, digest text)
returns table (place tid, workload bigint)
language sql stable parallel safe
as $$
  select w.ctid, workload_lock(w.pod_namespace, w.workload_kind, w.workload_name)
  from workload_container w
  where w.pod_namespace = namespace and w.last_pod_name = pod and w.container_name = container
    and w.cluster_id = 'primary'
    and (w.workload_kind, w.workload_name, w.image_digest) is distinct from (kind, name, digest)
  offset 0
$$;
