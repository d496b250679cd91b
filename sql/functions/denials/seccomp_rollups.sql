-- The stored denials of all workloads with observed syscalls: whether they are known, sums, and names, shortened if
-- there are too many. One statement and so one snapshot: a denial that is attributed at this moment counts either in
-- the sums or as unattributed.
create or replace function seccomp_rollups(retention_days integer)
returns table (
  namespace text, kind text, name text,
  is_known boolean, denied text, denied_syscalls json, denied_actions json, last_denied text, is_shortened boolean)
language sql stable
set enable_seqscan = on
set enable_bitmapscan = on
set enable_hashjoin = on
-- A plan made while a table was empty must not read it once per row of another.
set enable_nestloop = off
set plan_cache_mode = auto
set work_mem = '16MB'
as $$
  with listed as materialized (
    select row_number() over (order by w.pod_namespace, w.workload_kind, w.workload_name) as n,
           w.pod_namespace, w.workload_kind, w.workload_name
    from workload_syscalls w),
  blind as materialized (
    select distinct d.pod_namespace from seccomp_denial d
    where (d.workload_kind is null or d.workload_name is null) and d.last_seen >= retention_start(retention_days)),
  pair as materialized (
    select l.n, d.syscall, d.action, sum(d.count) as count, max(d.last_seen) as last_seen
    from listed l
    join seccomp_denial d on d.pod_namespace = l.pod_namespace and d.workload_kind = l.workload_kind
      and d.workload_name = l.workload_name
    where d.last_seen >= retention_start(retention_days)
    group by l.n, d.syscall, d.action),
  denied as materialized (
    select d.n, sum(d.count)::text as total, max(d.last_seen)::text as last_seen,
           (array_agg(distinct d.syscall) filter (where d.rank <= 800
                                                  and (d.seq <= 10000 or d.rank = 1)))[1:50] as syscalls,
           (array_agg(distinct d.action) filter (where d.rank <= 800
                                                 and (d.seq <= 10000 or d.rank = 1)))[1:16] as actions,
           bool_or(d.rank <= 800 and d.seq > 10000) as is_shortened
    from (select r.*, row_number() over (order by r.rank, r.n) as seq
          from (select p.*, row_number() over (partition by p.n order by p.syscall, p.action) as rank from pair p) r) d
    group by d.n)
  select l.pod_namespace, l.workload_kind, l.workload_name, (select s.is_watched from seccomp_watch(retention_days) s)
         and b.pod_namespace is null,
         d.total, to_json(d.syscalls), to_json(d.actions), d.last_seen, coalesce(d.is_shortened, false)
  from listed l
  left join blind b on b.pod_namespace = l.pod_namespace
  left join denied d on d.n = l.n
$$;
