-- Adds what pods sent to the set of their workload; returns how many names and architectures found no room, which makes
-- the pods doubtful: they may have sent something that is not in the set.
-- Entries from before a reset stay out, also when they are sent again: up to `cut_at`, by the agent's clock, if the pod
-- had sent something before; else up to the reset, if the pod was known before, by the agent's clock, too. Pods newer
-- than the reset may have sent something in the minutes before they were known. Without a `cut_at`, entries that stay
-- out make the pod doubtful: it counts as a pod that sent all of it after the reset.
create or replace function credit_workload(of_namespace text, of_kind text, of_workload text, sent json,
                                           moment timestamp) returns integer
language plpgsql
as $$
declare
  max_skew     constant interval := '5 minutes';
  max_bytes    constant integer := 16384;
  stored       workload_syscalls;
  old_names    text[];
  accepted     json;
  left_out     integer;
begin
  perform lock_workload_syscalls(of_namespace, of_kind, of_workload);
  select * into stored from workload_syscalls w
  where w.pod_namespace = of_namespace and w.workload_kind = of_kind and w.workload_name = of_workload;

  with compared as (
    select s.*,
           stored.reset_at is null
             or s.received_at > stored.reset_at
                and s.sent_at > coalesce(c.cut_at, stored.reset_at + case when s.first_seen < stored.reset_at
                                         then i.last_post - i.last_seen else -max_skew end, stored.reset_at)
             as is_in,
           c.cut_at is null as is_new
    from json_to_recordset(sent) as s(
      pod_name text, instance text, syscalls text[], arch text, capture_level text, sent_at timestamp,
      received_at timestamp,
      first_seen timestamp, is_moved boolean, is_doubtful boolean, image_digests text[])
    left join syscall_contribution c
      on c.pod_name = s.pod_name and c.pod_namespace = of_namespace and c.instance = s.instance
     and c.workload_kind = of_kind and c.workload_name = of_workload
    left join pod_instance i
      on i.pod_name = s.pod_name and i.pod_namespace = of_namespace and i.instance = s.instance
  )
  select json_agg(json_build_object(
           'pod_name', j.pod_name, 'instance', j.instance, 'syscalls', case when j.is_in then j.syscalls else '{}' end,
           'arch', j.arch,
           'capture_level', j.capture_level, 'sent_at', j.sent_at, 'is_moved', j.is_moved,
           'is_doubtful', j.is_doubtful or not j.is_in,
           'image_digests', j.image_digests))
  into accepted
  from compared j
  where j.is_in or j.is_new;

  if accepted is null then
    return 0;
  end if;

  old_names := coalesce(string_to_array(stored.syscalls, ','), '{}');
  left_out := grow_union(
    of_namespace, of_kind, of_workload,
    array(select distinct trimmed(n.name) from json_to_recordset(accepted) as s(syscalls text[])
          cross join lateral unnest(s.syscalls) n(name)
          where trimmed(n.name) <> ''),
    array(select distinct s.arch from json_to_recordset(accepted) as s(syscalls text[], arch text)
          where s.syscalls <> '{}' and trimmed(s.arch) <> ''));
  perform record_syscall_times(
    of_namespace, of_kind, of_workload, old_names,
    (select string_to_array(w.syscalls, ',') from workload_syscalls w
     where w.pod_namespace = of_namespace and w.workload_kind = of_kind and w.workload_name = of_workload),
    accepted, moment);

  insert into syscall_contribution as c (pod_name, pod_namespace, instance, workload_kind, workload_name, syscalls,
                                         arches, capture_level, level_at,
                                         is_doubtful, cut_at, seen_until)
  select s.pod_name, of_namespace, s.instance, of_kind, of_workload,
         union_names('', coalesce(string_agg(array_to_string(s.syscalls, ','), ','
           order by s.n) filter (where s.syscalls <> '{}'), '')),
         coalesce(array_agg(distinct s.arch) filter (where s.syscalls <> '{}'), '{}'),
         (array_agg(s.capture_level order by s.syscalls = '{}', s.sent_at desc, s.n desc))[1],
         (array_agg(s.sent_at order by s.syscalls = '{}', s.sent_at desc, s.n desc))[1],
         bool_or(s.is_doubtful) or left_out > 0, case when bool_or(s.is_moved) then timestamp '-infinity' end,
         max(s.sent_at)
  from rows from (json_to_recordset(accepted) as (
         pod_name text, instance text, syscalls text[], arch text, capture_level text, sent_at timestamp,
         is_moved boolean, is_doubtful boolean))
       with ordinality s(pod_name, instance, syscalls, arch, capture_level, sent_at, is_moved, is_doubtful, n)
  group by s.pod_name, s.instance
  order by s.pod_name, s.instance
  on conflict (pod_name, pod_namespace, instance, workload_kind, workload_name) do update set
    syscalls      = case when octet_length(c.syscalls) + octet_length(excluded.syscalls) > max_bytes then c.syscalls
                         else union_names(c.syscalls, excluded.syscalls) end,
    arches        = bounded_union(c.arches, excluded.arches, 16, max_bytes),
    capture_level = case when excluded.syscalls <> '' and excluded.level_at >= c.level_at then excluded.capture_level
      else c.capture_level end,
    level_at      = case when excluded.syscalls <> '' then greatest(excluded.level_at, c.level_at) else c.level_at end,
    is_doubtful   = c.is_doubtful or excluded.is_doubtful,
    seen_until    = greatest(excluded.seen_until, c.seen_until);
  return left_out;
end
$$;
