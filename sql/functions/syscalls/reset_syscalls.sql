-- Restarts the observed set of a workload; returns since when it is observed, null if it never was. Entries sent before
-- stay out from then on (see `credit_workload`): by the clock of the agent, which is as far off as it was at the last
-- post of the pod. A reset with a stored id is a retry and changes nothing; neither does
-- a reset if nothing was observed since the last one.
create or replace function reset_syscalls(of_namespace text, of_kind text, of_workload text, id uuid) returns timestamp
language plpgsql
as $$
declare
  max_skew constant interval := '5 minutes';
  stored workload_syscalls;
  moment timestamp;
begin
  perform lock_workload_syscalls(of_namespace, of_kind, of_workload);
  select * into stored from workload_syscalls w
  where w.pod_namespace = of_namespace and w.workload_kind = of_kind and w.workload_name = of_workload
  for update;
  if not found then
    return null;
  end if;
  if stored.reset_at is not null and (stored.reset_id = id or stored.syscalls = '') then
    return stored.reset_at;
  end if;

  moment := greatest(clock_timestamp() at time zone 'utc', stored.updated_at + interval '1 microsecond');
  update workload_syscalls w set
    syscalls      = '',
    arches        = '{}',
    hash          = union_hash('', '{}'),
    syscall_count = 0,
    updated_at    = moment,
    reset_at      = moment,
    reset_id      = id
  where w.pod_namespace = of_namespace and w.workload_kind = of_kind and w.workload_name = of_workload;

  delete from workload_syscalls_seen s
  where s.pod_namespace = of_namespace and s.workload_kind = of_kind and s.workload_name = of_workload;

  update syscall_contribution c set
    syscalls    = '',
    arches      = '{}',
    is_doubtful = false,
    cut_at      = greatest(coalesce((select moment + (i.last_post - i.last_seen) from pod_instance i
                                     where i.pod_name = c.pod_name and i.pod_namespace = c.pod_namespace
                                       and i.instance = c.instance), moment),
                           c.level_at, c.seen_until,
                           (select least(s.time_stamp, moment + max_skew) from pod_syscalls s
                            where s.pod_name = c.pod_name))
  where c.pod_namespace = of_namespace and c.workload_kind = of_kind and c.workload_name = of_workload;
  return moment;
end
$$;
