-- The contributors to the observed set of a workload: the worst rank (null without contributors), their number, how
-- many are below `full`, and the 20 worst as parallel arrays, the worst first. Pods that are gone count, pods without
-- syscalls do not.
create or replace function workload_capture(of_namespace text, of_kind text, of_workload text)
returns table (worst integer, pods integer, incomplete integer, names text[], ranks integer[])
language sql stable parallel safe
as $$
  select max(c.rank), count(*)::integer, count(*) filter (where c.rank > 0)::integer,
         (array_agg(c.pod_name order by c.rank desc, c.pod_name))[1:20],
         (array_agg(c.rank order by c.rank desc, c.pod_name))[1:20]
  from (select c.pod_name,
               contribution_rank(c, exists (select from unattributed_syscalls u
                                            where u.pod_name = c.pod_name and u.pod_namespace in ('', c.pod_namespace)
                                                  and not u.is_ambiguous)) as rank
        from syscall_contribution c
        where c.pod_namespace = of_namespace and c.workload_kind = of_kind and c.workload_name = of_workload) c
  where c.rank is not null
$$;
