-- Stores the syscalls that agents sent: in the records of pods, by name (`pods`, each once in the document, its names
-- without repeats in first-seen order, with the time of its newest entry), and in the sets of their workloads (`sent`,
-- the single entries; null if they are the same). In a record stored names stay in front, namespace and architecture
-- are those of the newest entry, the time is the greatest (docs/contract.md#syscalls). Returns what `credit_syscalls`
-- returns. Posts that add nothing and are not newer take no lock. Records are locked before workloads, both in the
-- order of their keys.
create or replace function add_syscalls(
  pods json, sent json, out left_out integer, out ambiguous integer, out unknown integer)
language plpgsql
as $$
declare
  moment constant timestamp := clock_timestamp() at time zone 'utc';
begin
  with posted as materialized (
    select i.*
    from json_to_recordset(pods) as i(pod_name text, pod_namespace text, syscalls text[], arch text,
                                      time_stamp timestamp)
    left join pod_syscalls stored on stored.pod_name = i.pod_name
    where stored.pod_name is null
       or i.time_stamp > stored.time_stamp
       or (i.time_stamp = stored.time_stamp and (i.pod_namespace <> stored.pod_namespace or i.arch <> stored.arch))
       or (array_to_string(i.syscalls, ',') <> stored.syscalls
           and not i.syscalls <@ string_to_array(stored.syscalls, ','))
  )
  insert into pod_syscalls as s (pod_name, pod_namespace, syscalls, arch, time_stamp)
  select i.pod_name, i.pod_namespace, array_to_string(i.syscalls, ','), i.arch, i.time_stamp
  from posted i
  order by i.pod_name
  on conflict (pod_name) do update set
    syscalls      = union_names(s.syscalls, excluded.syscalls),
    pod_namespace = case when excluded.time_stamp >= s.time_stamp then excluded.pod_namespace else s.pod_namespace end,
    arch          = case when excluded.time_stamp >= s.time_stamp then excluded.arch else s.arch end,
    time_stamp    = greatest(s.time_stamp, excluded.time_stamp);

  select c.left_out, c.ambiguous, c.unknown into left_out, ambiguous, unknown
         from credit_syscalls(coalesce(sent, pods), moment) c;
end
$$;
