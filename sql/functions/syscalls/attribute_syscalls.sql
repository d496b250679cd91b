-- Attributes the waiting syscalls of pods of these names, as far as their senders are known by now.
create or replace function attribute_syscalls(pods text[], moment timestamp) returns void
language plpgsql
as $$
declare
  taken json;
begin
  if not exists (select from unattributed_syscalls u where u.pod_name = any (pods) and not u.is_ambiguous) then
    return;
  end if;
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
  into taken
  from deleted d
  cross join lateral unnest(d.arches) a(arch);
  perform credit_syscalls(taken, moment);
end
$$;
