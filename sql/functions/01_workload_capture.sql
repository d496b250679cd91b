-- Who contributed to the union of a workload and how much of it they capture: the worst rank (null without a contributor), how many there
-- are, how many are below `full`, and the 20 worst as parallel arrays, the worst first. Dead pods count, pods without syscalls do not.
create or replace function workload_capture(of_namespace text, of_kind text, of_workload text)
returns table (worst integer, pods integer, incomplete integer, names text[], ranks integer[])
language sql stable parallel safe
as $$
  select max(c.rank), count(*)::integer, count(*) filter (where c.rank > 0)::integer,
         (array_agg(c.pod_name order by c.rank desc, c.pod_name))[1:20],
         (array_agg(c.rank order by c.rank desc, c.pod_name))[1:20]
  from (select p.pod_name, capture_rank(p.capture_level) as rank
        from pod p
        where p.pod_namespace = of_namespace and p.workload_kind = of_kind and p.workload_name = of_workload
          and exists (select from pod_syscalls s where s.pod_name = p.pod_name)) c
$$;
