-- no-transaction: The order of the feed of running containers (interop-supply-chain 3.7); no column of it ever changes.
create index concurrently if not exists workload_container_in_feed_order
  on workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest);
