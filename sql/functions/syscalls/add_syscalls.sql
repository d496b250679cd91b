-- Stores the syscalls that agents sent: in the records of pods, by name (`pods`, each once in the document, its names
-- without repeats in first-seen order, with the time of its newest entry), and in the sets of their workloads (`sent`,
-- the single entries; null if they are the same). In a record stored names stay in front, namespace and architecture
-- are those of the newest entry, the time is the greatest (docs/contract.md#syscalls). Returns what `credit_syscalls`
-- returns. Posts that add nothing and are not newer take no lock. Records are locked before workloads, both in the
-- order of their keys.
-- Most posts repeat what is stored. A look at the rows of the pod detects that cheaply; other posts are judged in full.
create or replace function add_syscalls(
  pods json, sent json, out left_out integer, out ambiguous integer, out unknown integer)
language plpgsql
as $$
declare
  moment constant timestamp := clock_timestamp() at time zone 'utc';
  step   constant interval := '5 minutes';
  gone   constant interval := '15 minutes';
  is_recorded boolean;
  is_credited boolean;
begin
  select bool_and(coalesce(
           (i.time_stamp < s.time_stamp
            or i.time_stamp = s.time_stamp and i.pod_namespace = s.pod_namespace and i.arch = s.arch)
           and (i.joined = s.syscalls or i.syscalls <@ string_to_array(s.syscalls, ',')), false)),
         -- Candidates are the instances that `syscall_senders` names. All have one namespace, and `credit_syscalls`
         -- would add nothing for any of them.
         sent is null and bool_and(coalesce(
           i.joined <> ''
           and (select min(e.pod_namespace) = max(e.pod_namespace)
                       and bool_and(coalesce(
                         (i.joined = c.syscalls or i.syscalls <@ string_to_array(c.syscalls, ','))
                         and i.arch = any (c.arches)
                         and i.sent_at <= c.seen_until + step
                         and (i.sent_at < c.level_at
                              or c.capture_level is not distinct from e.capture_level
                                 and (i.sent_at >= e.level_since
                                      or e.earlier_level is not distinct from e.capture_level)), false))
                from pod_instance e
                left join syscall_contribution c
                  on c.pod_name = e.pod_name and c.pod_namespace = e.pod_namespace and c.instance = e.instance
                 and c.workload_kind = e.workload_kind and c.workload_name = e.workload_name
                where e.pod_name = i.pod_name and (i.pod_namespace = '' or e.pod_namespace = i.pod_namespace)
                  and (e.last_seen >= moment - gone
                       or i.sent_at between least(e.started_at, e.first_post) - gone and e.last_post + gone)), false))
  into is_recorded, is_credited
  from (select i.*, array_to_string(i.syscalls, ',') as joined, least(i.time_stamp, moment + step) as sent_at
        from json_to_recordset(pods) as i(pod_name text, pod_namespace text, syscalls text[], arch text,
                                          time_stamp timestamp)
        offset 0) i
  left join pod_syscalls s on s.pod_name = i.pod_name;

  if not is_recorded then
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
      pod_namespace = case when excluded.time_stamp >= s.time_stamp
                        then excluded.pod_namespace else s.pod_namespace end,
      arch          = case when excluded.time_stamp >= s.time_stamp then excluded.arch else s.arch end,
      time_stamp    = greatest(s.time_stamp, excluded.time_stamp);
  end if;

  if is_credited then
    left_out  := 0;
    ambiguous := 0;
    unknown   := 0;
    return;
  end if;
  select c.left_out, c.ambiguous, c.unknown into left_out, ambiguous, unknown
         from credit_syscalls(coalesce(sent, pods), moment) c;
end
$$;
