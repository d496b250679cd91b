-- Whether another living pod of the workload runs the container and its image, by the last post of that pod.
create or replace function runs_in_other_pod(w workload_container, pod text) returns boolean
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return exists (
    select
    from live_pods_of(w.pod_namespace, w.workload_kind, w.workload_name) l
    cross join lateral (
      select e.image_digests from pod_instance e
      where e.pod_name = l.pod_name and e.pod_namespace = w.pod_namespace
      order by e.last_post desc, e.first_post desc
      limit 1) e
    where l.pod_name <> pod and w.container_name = any (l.running_containers)
      and w.image_digest = any (e.image_digests));
end
$$;
