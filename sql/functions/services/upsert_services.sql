-- Writes service records, each address once in the document; returns how many were written. A null never overwrites a
-- stored value, and unchanged rows are not written.
create or replace function upsert_services(doc json) returns integer
language plpgsql
as $$
declare
  written integer;
begin
  insert into service as s (svc_ip, svc_name, svc_namespace, service_spec, time_stamp, svc_uid)
  select i.svc_ip, i.svc_name, i.svc_namespace, i.service_spec, i.time_stamp, i.svc_uid
  from json_to_recordset(doc) as i(
    svc_ip text, svc_name text, svc_namespace text, service_spec json, time_stamp timestamp, svc_uid text)
  left join service p on p.svc_ip = i.svc_ip
  where p.svc_ip is null
     or p.time_stamp <> i.time_stamp
     or i.svc_name           is distinct from p.svc_name           and i.svc_name      is not null
     or i.svc_namespace      is distinct from p.svc_namespace      and i.svc_namespace is not null
     or i.service_spec::text is distinct from p.service_spec::text and i.service_spec  is not null
  order by i.svc_ip
  on conflict (svc_ip) do update set
    svc_name      = coalesce(excluded.svc_name, s.svc_name),
    svc_namespace = coalesce(excluded.svc_namespace, s.svc_namespace),
    service_spec  = coalesce(excluded.service_spec, s.service_spec),
    time_stamp    = excluded.time_stamp,
    svc_uid       = case when excluded.service_spec is null then s.svc_uid else excluded.svc_uid end;
  get diagnostics written = row_count;
  return written;
end
$$;
