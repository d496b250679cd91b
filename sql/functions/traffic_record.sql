-- A flow as every read shows it.
create or replace function traffic_record(t traffic) returns json
language sql stable parallel safe
as $$ select json_build_object(
  'uuid', t.uuid, 'pod_name', t.pod_name, 'pod_namespace', t.pod_namespace, 'pod_ip', t.pod_ip, 'pod_port', t.pod_port,
  'ip_protocol', t.ip_protocol, 'traffic_type', t.traffic_type, 'traffic_in_out_ip', t.traffic_in_out_ip,
  'traffic_in_out_port', t.traffic_in_out_port, 'decision', t.decision, 'time_stamp', wire_time(t.time_stamp),
  'peer_kind', t.peer_kind, 'peer_namespace', t.peer_namespace, 'peer_name', t.peer_name, 'peer_uid', t.peer_uid,
  'peer_workload_kind', t.peer_workload_kind, 'peer_workload_name', t.peer_workload_name,
  'peer_resolved_at', wire_time(t.peer_resolved_at), 'drop_cause', t.drop_cause, 'syn_retries', t.syn_retries) $$;
