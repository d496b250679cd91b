-- Lets the other pods of the workloads of `speakers` speak in their unions too, where they do not yet: they were there before their workload was
-- known, and are dead perhaps (interop-profiling 1.2). Returns who they are, a thousand of a workload at most: the rest comes with a later post.
-- Nobody is waited for: who is being written speaks for himself.
create or replace function late_speakers(speakers text[]) returns text[]
language sql
as $$
  with late as (
    select l.pod_name, w.key
    from (select distinct s.united_in as key
          from unnest(speakers) as speaker(pod_name)
          join pod_syscalls s on s.pod_name = speaker.pod_name
          where s.united_in is not null) w
    cross join lateral (
      select s.pod_name
      from pod p
      join pod_syscalls s on s.pod_name = p.pod_name
      where p.pod_namespace = w.key::json ->> 0 and p.workload_kind = w.key::json ->> 1 and p.workload_name = w.key::json ->> 2
        and s.united_in is distinct from w.key
      limit 1000
      for update of s skip locked) l
  ), changed as (
    update pod_syscalls s set united_in = late.key from late where s.pod_name = late.pod_name
    returning s.pod_name
  )
  select coalesce(array_agg(c.pod_name), '{}') from changed c
$$;
