-- no-transaction: Retention finds the next newer flow of a rule with one look-up, however many rules a pod has.
-- A newer flow of the same rule allows the older one to be deleted (docs/contract.md#retention).
create index concurrently if not exists traffic_by_rule on traffic (
  hash_record_extended(row(
    pod_name, pod_namespace, peer_kind, peer_namespace, peer_workload_kind, coalesce(peer_workload_name, peer_name),
    traffic_type, ip_protocol, pod_port, traffic_in_out_port, decision), 0),
  time_stamp
) where peer_kind in ('pod', 'service');
