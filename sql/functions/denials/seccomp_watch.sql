-- Whether anything can be said of denials: a node with its probe attached reported within its own window, and at most
-- 1,000 namespaces have stored denials without a known workload. The recursion walks the index from namespace to
-- namespace.
create or replace function seccomp_watch(retention_days integer)
returns table (is_watched boolean)
language sql stable
as $$
  with recursive unattributed (pod_namespace, n) as (
    (select d.pod_namespace, 1
     from seccomp_denial d
     where (d.workload_kind is null or d.workload_name is null) and d.last_seen >= retention_start(retention_days)
     order by d.pod_namespace
     limit 1)
    union all
    select (select d.pod_namespace
            from seccomp_denial d
            where (d.workload_kind is null or d.workload_name is null) and d.pod_namespace > u.pod_namespace
              and d.last_seen >= retention_start(retention_days)
            order by d.pod_namespace
            limit 1), u.n + 1
    from unattributed u
    where u.pod_namespace is not null and u.n <= 1000)
  select exists (
           select from seccomp_denial_node d where is_drain_current(d.capturing, d.updated_at, d.interval_seconds))
     and (select count(u.pod_namespace) <= 1000 from unattributed u)
$$;
