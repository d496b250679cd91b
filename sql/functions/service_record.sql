-- A service as every read shows it.
create or replace function service_record(s service) returns json
language sql stable parallel safe
as $$ select json_build_object(
  'svc_ip', s.svc_ip, 'svc_name', s.svc_name, 'svc_namespace', s.svc_namespace, 'service_spec', s.service_spec,
  'time_stamp', wire_time(s.time_stamp)) $$;
