-- What pods whose rows name a union (`united_in`) have to add to it, a row a workload in the order of the keys. With them speak all other pods of
-- the workload whose rows do not: they were late, or dead, when the workload became known (interop-profiling 1.2). Who has no names has no
-- architecture to add either, so that the order of posts makes no difference. Nothing is locked.
create or replace function offered_syscalls(pods text[])
returns table (pod_namespace text, workload_kind text, workload_name text, syscalls text[], arches text[])
language sql stable
as $$
  select k.namespace, k.kind, k.name, o.syscalls, o.arches
  from (select s.united_in as key, array_agg(s.pod_name) as pods
        from unnest(pods) as posted(pod_name)
        join pod_syscalls s on s.pod_name = posted.pod_name
        where s.united_in is not null
        group by s.united_in) w
  cross join lateral (
    select (w.key::json ->> 0) collate "C" as namespace, (w.key::json ->> 1) collate "C" as kind, (w.key::json ->> 2) collate "C" as name) k
  cross join lateral (
    with contributed as (
      select s.syscalls, s.arch
      from unnest(w.pods) as posted(pod_name)
      join pod_syscalls s on s.pod_name = posted.pod_name
      union all
      select s.syscalls, s.arch
      from pod p
      join pod_syscalls s on s.pod_name = p.pod_name
      where p.pod_namespace = k.namespace and p.workload_kind = k.kind and p.workload_name = k.name
        and s.united_in is distinct from w.key
    )
    select array(select distinct trimmed(name) from contributed c cross join lateral unnest(string_to_array(c.syscalls, ',')) name
                 where trimmed(name) <> '') as syscalls,
           array(select distinct c.arch from contributed c where c.syscalls <> '' and trimmed(c.arch) <> '') as arches) o
  order by k.namespace, k.kind, k.name
$$;
