-- no-transaction: The profile of a workload lists its edges, and those of its pods from before the workload was known.
create index concurrently if not exists flow_edge_by_workload
  on flow_edge (pod_namespace, pod_workload_kind, pod_workload_name, pod_name);
