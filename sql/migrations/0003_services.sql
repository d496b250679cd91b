-- The cluster address is the key of a service, because attribution looks services up by address.
create table service (
  svc_ip        text collate "C" primary key,
  svc_name      text collate "C",
  svc_namespace text collate "C",
  service_spec  json,
  time_stamp    timestamp not null,
  svc_uid       text
) with (fillfactor = 80);

create index service_by_namespace on service (svc_namespace, svc_name, svc_ip);
