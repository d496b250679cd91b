-- no-transaction: The feed of running containers has this order. None of the columns ever changes.
create index concurrently if not exists workload_container_in_feed_order
  on workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest);
