-- no-transaction: the next newer flow of the same rule, which supersedes an old one: one probe, however many rules a pod has.
create index concurrently if not exists traffic_by_rule on traffic (
  hash_record_extended(row(
    pod_name, pod_namespace, peer_kind, peer_namespace, peer_workload_kind, coalesce(peer_workload_name, peer_name),
    traffic_type, ip_protocol, pod_port, traffic_in_out_port, decision), 0),
  time_stamp
) where peer_kind in ('pod', 'service');
