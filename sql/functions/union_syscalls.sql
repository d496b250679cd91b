-- Adds syscall names to pods, each pod once in the document, with its names each once in first-seen order and the time of its
-- newest entry; returns how many pods were written. Stored names stay in front. The namespace and the architecture are those of
-- the newest entry, the time is the greatest. What adds nothing and is no newer takes no lock.
create or replace function union_syscalls(doc json) returns integer
language plpgsql
as $$
declare
  written integer;
begin
  insert into pod_syscalls as s (pod_name, pod_namespace, syscalls, arch, time_stamp)
  select i.pod_name, i.pod_namespace, array_to_string(i.syscalls, ','), i.arch, i.time_stamp
  from json_to_recordset(doc) as i(pod_name text, pod_namespace text, syscalls text[], arch text, time_stamp timestamp)
  left join pod_syscalls p on p.pod_name = i.pod_name
  where p.pod_name is null
     or i.time_stamp > p.time_stamp
     or (i.time_stamp = p.time_stamp and (i.pod_namespace <> p.pod_namespace or i.arch <> p.arch))
     or not i.syscalls <@ string_to_array(p.syscalls, ',')
  order by i.pod_name
  on conflict (pod_name) do update set
    syscalls      = union_names(s.syscalls, excluded.syscalls),
    pod_namespace = case when excluded.time_stamp >= s.time_stamp then excluded.pod_namespace else s.pod_namespace end,
    arch          = case when excluded.time_stamp >= s.time_stamp then excluded.arch else s.arch end,
    time_stamp    = greatest(s.time_stamp, excluded.time_stamp);
  get diagnostics written = row_count;
  return written;
end
$$;
