-- no-transaction: `GET /flows` looks up the edges to the workload of a pod, as flow_pod has it.
create index concurrently if not exists flow_edge_by_peer on flow_edge
  (coalesce(peer_namespace, ''), coalesce(peer_workload_kind, ''), coalesce(peer_workload_name, ''))
  where peer_kind = 'pod';
