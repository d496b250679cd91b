-- A pod as every read shows it: the keys in wire order, all of them.
create or replace function pod_record(p pod) returns json
language sql stable parallel safe
as $$ select json_build_object(
  'pod_name', p.pod_name, 'pod_ip', p.pod_ip, 'pod_namespace', p.pod_namespace, 'pod_obj', p.pod_obj,
  'time_stamp', wire_time(p.time_stamp), 'node_name', p.node_name, 'is_dead', p.is_dead, 'pod_identity', p.pod_identity,
  'workload_selector_labels', p.workload_selector_labels, 'pod_ips', array_to_json(p.pod_ips),
  'workload_kind', p.workload_kind, 'workload_name', p.workload_name, 'capture_level', p.capture_level,
  'host_network', p.host_network, 'started_at', wire_time(p.started_at)) $$;
