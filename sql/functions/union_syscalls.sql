-- Adds syscall names to pods, each pod once in the document, with its names each once in first-seen order and the time of its
-- newest entry. Stored names stay in front. The namespace and the architecture are those of the newest entry, the time is the greatest.
-- Then adds what the written pods have to the unions of their workloads; returns how many names and architectures found no room there.
-- What adds nothing, is no newer and speaks in the union of the workload that the pod has takes no lock; what is only newer, as the posts of
-- agents are each minute, is written without a look at unions. Pods are locked before workloads, each in the order of their keys.
create or replace function union_syscalls(doc json) returns integer
language plpgsql
as $$
declare
  speakers text[];
  offer    record;
  left_out integer := 0;
begin
  with posted as materialized (
    select i.*, workload_key(p.pod_namespace, p.workload_kind, p.workload_name) as key,
           stored.pod_name is null
             or i.arch <> stored.arch
             or (array_to_string(i.syscalls, ',') <> stored.syscalls and not i.syscalls <@ string_to_array(stored.syscalls, ','))
             or stored.united_in is distinct from workload_key(p.pod_namespace, p.workload_kind, p.workload_name) as is_news
    from json_to_recordset(doc) as i(pod_name text, pod_namespace text, syscalls text[], arch text, time_stamp timestamp)
    left join pod_syscalls stored on stored.pod_name = i.pod_name
    left join pod p on p.pod_name = i.pod_name
    where stored.pod_name is null
       or i.time_stamp > stored.time_stamp
       or (i.time_stamp = stored.time_stamp and (i.pod_namespace <> stored.pod_namespace or i.arch <> stored.arch))
       or (array_to_string(i.syscalls, ',') <> stored.syscalls and not i.syscalls <@ string_to_array(stored.syscalls, ','))
       or stored.united_in is distinct from workload_key(p.pod_namespace, p.workload_kind, p.workload_name)
  ), written as (
    insert into pod_syscalls as s (pod_name, pod_namespace, syscalls, arch, time_stamp, united_in)
    select i.pod_name, i.pod_namespace, array_to_string(i.syscalls, ','), i.arch, i.time_stamp, case when i.is_news then i.key else '' end
    from posted i
    order by i.pod_name
    on conflict (pod_name) do update set
      syscalls      = union_names(s.syscalls, excluded.syscalls),
      pod_namespace = case when excluded.time_stamp >= s.time_stamp then excluded.pod_namespace else s.pod_namespace end,
      arch          = case when excluded.time_stamp >= s.time_stamp then excluded.arch else s.arch end,
      time_stamp    = greatest(s.time_stamp, excluded.time_stamp),
      united_in     = case when excluded.united_in = '' then s.united_in else excluded.united_in end
  )
  select array_agg(p.pod_name) into speakers from posted p where p.is_news and p.key is not null;

  if speakers is null then
    return 0;
  end if;

  speakers := speakers || late_speakers(speakers);
  for offer in select * from offered_syscalls(speakers) loop
    left_out := left_out + grow_union(offer.pod_namespace, offer.workload_kind, offer.workload_name, offer.syscalls, offer.arches);
  end loop;
  return left_out;
end
$$;
