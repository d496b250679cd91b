-- Attributes the waiting syscalls of pods of these names, as far as their senders are known by now. A pod that is new
-- at `moment` may have sent something before, which was then attributed to the previous pod of its name. So it
-- contributes at its own level, and is doubtful if that pod belonged to another workload or if the set was reset since.
-- At `full` with nothing doubtful it does not: the previous pod may have sent all of it, and the set would look
-- complete too soon.
create or replace function attribute_syscalls(pods text[], moment timestamp) returns void
language plpgsql
as $$
declare
  waiting json;
  early   json;
begin
  select json_agg(json_build_object('pod_name', e.pod_name, 'pod_namespace', e.pod_namespace, 'syscalls',
                                    array[]::text[], 'arch', '', 'time_stamp', e.started_at,
                                    'received_at', e.started_at, 'is_cut', e.is_cut))
  into early
  from (select distinct on (i.pod_name, i.pod_namespace, i.instance) i.pod_name, i.pod_namespace, i.started_at,
               i.capture_level,
               (c.workload_kind, c.workload_name) <> (i.workload_kind, i.workload_name)
                 or coalesce(w.reset_at >= i.started_at, false) as is_cut
        from pod_instance i
        join syscall_contribution c
          on c.pod_name = i.pod_name and c.pod_namespace = i.pod_namespace and c.instance not in (i.instance, '?')
        join pod_syscalls s
          on s.pod_name = i.pod_name and s.pod_namespace in ('', i.pod_namespace) and s.time_stamp >= i.started_at
        left join workload_syscalls w
          on w.pod_namespace = i.pod_namespace and w.workload_kind = i.workload_kind
         and w.workload_name = i.workload_name
        where i.pod_name = any (pods) and i.first_seen = moment and not i.is_moved
        order by i.pod_name, i.pod_namespace, i.instance, c.seen_until desc) e
  where e.is_cut or e.capture_level is distinct from 'full';

  if exists (select from unattributed_syscalls u where u.pod_name = any (pods) and not u.is_ambiguous) then
    with locked as materialized (
      select u.pod_name, u.pod_namespace from unattributed_syscalls u
      where u.pod_name = any (pods) and not u.is_ambiguous
      order by u.pod_name, u.pod_namespace
      for update
    ), deleted as (
      delete from unattributed_syscalls u using locked l
      where u.pod_name = l.pod_name and u.pod_namespace = l.pod_namespace and not u.is_ambiguous
      returning u.*
    )
    select json_agg(json_build_object('pod_name', d.pod_name, 'pod_namespace', d.pod_namespace, 'syscalls',
                                      string_to_array(d.syscalls, ','),
                                      'arch', a.arch, 'time_stamp', d.sent_at, 'received_at', d.received_at,
                                      'is_cut', d.is_cut))
    into waiting
    from deleted d
    cross join lateral unnest(d.arches) a(arch);
  end if;

  if waiting is not null or early is not null then
    perform credit_syscalls((coalesce(waiting::jsonb, '[]') || coalesce(early::jsonb, '[]'))::json, moment);
  end if;
end
$$;
