-- no-transaction: Reads look up the pods of a workload. None of these columns changes from one post to the next.
create index concurrently if not exists pod_by_workload
  on pod (pod_namespace, workload_kind, workload_name)
  where workload_kind is not null and workload_name is not null;
