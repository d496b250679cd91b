-- Attributes syscalls to the pods that sent them and adds them to the sets of their workloads, by namespace, workload
-- and capture level at the time of sending. Entries with no single sender are kept in `unattributed_syscalls`, and the
-- contributions of their possible senders are marked doubtful. So is the sender of kept entries of which some found no
-- room (`is_cut`). Returns how many names and architectures found no room,
-- how many entries are ambiguous between namespaces, and how many belong to no recently posted pod.
-- Entries that add nothing are recognised by reading alone and take no lock. Workloads are locked in the order of their
-- keys, after `unattributed_syscalls`.
create or replace function credit_syscalls(
  sent json, moment timestamp, out left_out integer, out ambiguous integer, out unknown integer)
language plpgsql
as $$
declare
  max_skew  constant interval := '5 minutes';
  step      constant interval := '5 minutes';
  max_names constant integer := 1024;
  max_arches constant integer := 16;
  max_bytes constant integer := 16384;
  news      json;
  waiting   json;
  workload  record;
begin
  left_out := 0;
  with given as materialized (
    select i.n, i.pod_name, trimmed(i.pod_namespace) as pod_namespace, i.syscalls, i.arch,
           coalesce(i.received_at, moment) as received_at, coalesce(i.is_cut, false) as is_cut,
           least(i.time_stamp, moment + max_skew) as sent_at
    from rows from (json_to_recordset(sent) as (
           pod_name text, pod_namespace text, syscalls text[], arch text, time_stamp timestamp, received_at timestamp,
           is_cut boolean))
         with ordinality i(pod_name, pod_namespace, syscalls, arch, time_stamp, received_at, is_cut, n)
  ), resolved as materialized (
    select g.*, s.pod_namespace as sender_namespace, s.instance, s.workload_kind, s.workload_name, s.capture_level,
           s.is_moved, s.image_digests,
           s.first_seen, coalesce(s.namespaces, 0) as namespaces,
           coalesce(trimmed(s.workload_kind) <> '' and trimmed(s.workload_name) <> '', false) as is_owned,
           case when s.namespaces = 1 then s.pod_namespace else g.pod_namespace end as kept_under
    from given g
    left join lateral syscall_senders(g.pod_name, g.pod_namespace, g.sent_at, moment) s on true
  ), compared as (
    select r.*,
           c.pod_name is null
             or (r.namespaces > 1 or r.is_cut) and not c.is_doubtful
             or r.namespaces = 1 and r.syscalls <> '{}' and (
                  array_to_string(r.syscalls, ',') <> c.syscalls and not r.syscalls <@ string_to_array(c.syscalls, ',')
                  or r.arch <> all (c.arches)
                  or r.capture_level is distinct from c.capture_level and r.sent_at >= c.level_at
                  or r.sent_at > c.seen_until + step) as is_news,
           r.syscalls <> '{}' and (r.namespaces <> 1 or not r.is_owned) as is_apart,
           u.pod_name is not null and r.syscalls <@ string_to_array(u.syscalls, ',') and r.arch = any (u.arches)
             and r.sent_at <= u.sent_at + step and not r.is_cut as is_kept
    from resolved r
    left join syscall_contribution c
      on r.is_owned and c.pod_name = r.pod_name and c.pod_namespace = r.sender_namespace and c.instance = r.instance
     and c.workload_kind = r.workload_kind and c.workload_name = r.workload_name
    left join unattributed_syscalls u
      on (r.namespaces <> 1 or not r.is_owned)
     and u.pod_name = r.pod_name and u.pod_namespace = r.kept_under and u.is_ambiguous = (r.namespaces > 1)
  )
  select json_agg(json_build_object(
           'pod_name', j.pod_name, 'pod_namespace', j.sender_namespace, 'instance', j.instance, 'workload_kind',
           j.workload_kind,
           'workload_name', j.workload_name, 'syscalls', case when j.namespaces = 1 then j.syscalls else '{}' end,
           'arch', j.arch,
           'capture_level', j.capture_level, 'sent_at', j.sent_at, 'received_at', j.received_at, 'first_seen',
           j.first_seen,
           'is_moved', j.is_moved, 'is_doubtful', j.namespaces > 1 or j.is_cut, 'image_digests', j.image_digests))
           filter (where j.is_owned and j.is_news and (j.namespaces = 1 or j.syscalls <> '{}')),
         json_agg(json_build_object(
           'pod_name', j.pod_name, 'pod_namespace', j.kept_under, 'is_ambiguous', j.namespaces > 1, 'syscalls',
           j.syscalls, 'arch', j.arch,
           'sent_at', j.sent_at, 'received_at', j.received_at, 'is_cut', j.is_cut))
           filter (where j.is_apart and not j.is_kept),
         count(distinct j.n) filter (where j.is_apart and j.namespaces > 1),
         count(distinct j.n) filter (where j.is_apart and j.namespaces = 0)
  into news, waiting, ambiguous, unknown
  from compared j;

  if waiting is not null then
    insert into unattributed_syscalls as u (pod_name, pod_namespace, is_ambiguous, syscalls, arches, sent_at,
                                            received_at, is_cut)
    select w.pod_name, w.pod_namespace, w.is_ambiguous, array_to_string(k.syscalls, ','), k.arches, w.sent_at,
           w.received_at, w.is_cut or not w.syscalls <@ k.syscalls or not w.arches <@ k.arches
    from (select w.pod_name, w.pod_namespace, w.is_ambiguous,
                 without_repeats(string_to_array(string_agg(array_to_string(w.syscalls, ','), ','), ',')) as syscalls,
                 array_agg(distinct w.arch) as arches, max(w.sent_at) as sent_at, min(w.received_at) as received_at,
                 bool_or(w.is_cut) as is_cut
          from json_to_recordset(waiting) as w(
            pod_name text, pod_namespace text, is_ambiguous boolean, syscalls text[], arch text, sent_at timestamp,
            received_at timestamp, is_cut boolean)
          group by w.pod_name, w.pod_namespace, w.is_ambiguous) w
    cross join lateral (select bounded_union('{}', w.syscalls, max_names, max_bytes) as syscalls,
                               bounded_union('{}', w.arches, max_arches, max_bytes) as arches) k
    order by w.pod_name, w.pod_namespace, w.is_ambiguous
    on conflict (pod_name, pod_namespace, is_ambiguous) do update set
      (syscalls, arches, sent_at, is_cut)
        = (select array_to_string(k.syscalls, ','), k.arches, greatest(u.sent_at, excluded.sent_at),
                  u.is_cut or excluded.is_cut
                  or not string_to_array(u.syscalls, ',') || string_to_array(excluded.syscalls, ',') <@ k.syscalls
                  or not u.arches || excluded.arches <@ k.arches
           from (select bounded_union(string_to_array(u.syscalls, ','), string_to_array(excluded.syscalls, ','),
                                      max_names, max_bytes) as syscalls,
                        bounded_union(u.arches, excluded.arches, max_arches, max_bytes) as arches) k);
  end if;

  if news is not null then
    for workload in
      select n.pod_namespace, n.workload_kind, n.workload_name, json_agg(n) as sent
      from json_to_recordset(news) as n(
        pod_name text, pod_namespace text collate "C", instance text, workload_kind text collate "C",
        workload_name text collate "C",
        syscalls text[], arch text, capture_level text, sent_at timestamp, received_at timestamp, first_seen timestamp,
        is_moved boolean,
        is_doubtful boolean, image_digests text[])
      group by n.pod_namespace, n.workload_kind, n.workload_name
      order by n.pod_namespace, n.workload_kind, n.workload_name
    loop
      left_out := left_out + credit_workload(workload.pod_namespace, workload.workload_kind, workload.workload_name,
                                             workload.sent, moment);
    end loop;
  end if;
end
$$;
