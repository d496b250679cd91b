-- Why it is not known whether anything was denied in a namespace (docs/contract.md#denials), and the row that decided
-- (docs/contract.md#reason-details); both null where it is known. `is_watched` is that of `seccomp_watch`, which looks
-- at the whole cluster and so is asked once.
create or replace function denials_gap(namespace text, is_watched boolean, retention_days integer)
returns table (reason text, detail json)
language sql stable
as $$
  select g.reason,
         case g.reason
           -- The drain that came last.
           when 'no_node_watching' then (
             select coverage_detail_json(case when d.capturing then 'drain_late' else 'probe_detached' end, null, null,
                                         d.node_name, d.updated_at)
             from seccomp_denial_node d
             order by d.updated_at desc, d.node_name
             limit 1)
           when 'unattributed_denials' then (
             select coverage_detail_json('unattributed', null, d.pod_name, d.node_name, d.last_seen)
             from seccomp_denial d
             where d.pod_namespace = namespace and (d.workload_kind is null or d.workload_name is null)
               and d.last_seen >= retention_start(retention_days)
             order by d.id desc
             limit 1)
         end
  from (
    select case
      when not is_watched and not exists (
        select from seccomp_denial_node d where is_drain_current(d.capturing, d.updated_at, d.interval_seconds))
        then 'no_node_watching'
      when not is_watched then 'unattributed_in_cluster'
      when exists (
        select from seccomp_denial d
        where d.pod_namespace = namespace and (d.workload_kind is null or d.workload_name is null)
          and d.last_seen >= retention_start(retention_days)) then 'unattributed_denials'
    end as reason) g
$$;
