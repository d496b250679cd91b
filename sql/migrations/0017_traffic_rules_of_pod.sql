-- no-transaction: The new flows of a pod change only a few pages of this index, unlike those of traffic_by_rule.
-- It has the same look-ups, but the rules of a pod lie side by side.
create index concurrently if not exists traffic_rules_of_pod on traffic (
  hash_record(row(pod_name)),
  hash_record(row(
    pod_name, pod_namespace, peer_kind, peer_namespace, peer_workload_kind, coalesce(peer_workload_name, peer_name),
    traffic_type, ip_protocol, pod_port, traffic_in_out_port, decision)),
  time_stamp
) where peer_kind in ('pod', 'service');
