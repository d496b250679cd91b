-- no-transaction: A post looks up the rows that name its pod, whatever their workload.
create index concurrently if not exists workload_container_by_last_pod
  on workload_container (pod_namespace, last_pod_name, container_name) where last_pod_name is not null;
