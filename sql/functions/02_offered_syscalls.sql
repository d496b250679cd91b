-- What pods have to add to the unions that their rows name (`united_in`), a row a workload in the order of the keys. Who has no names has no
-- architecture to add either, so that the order of posts makes no difference.
create or replace function offered_syscalls(pods text[])
returns table (pod_namespace text, workload_kind text, workload_name text, syscalls text[], arches text[])
language sql stable
as $$
  select k.namespace, k.kind, k.name, o.syscalls, o.arches
  from (select s.united_in as key, array_agg(s.pod_name) as pods
        from unnest(pods) as speaker(pod_name)
        join pod_syscalls s on s.pod_name = speaker.pod_name
        where s.united_in is not null
        group by s.united_in) w
  cross join lateral (
    select (w.key::json ->> 0) collate "C" as namespace, (w.key::json ->> 1) collate "C" as kind, (w.key::json ->> 2) collate "C" as name) k
  cross join lateral (
    with contributed as (
      select s.syscalls, s.arch
      from unnest(w.pods) as speaker(pod_name)
      join pod_syscalls s on s.pod_name = speaker.pod_name
      where s.syscalls <> ''
    )
    select array(select distinct trimmed(name) from contributed c cross join lateral unnest(string_to_array(c.syscalls, ',')) name
                 where trimmed(name) <> '') as syscalls,
           array(select distinct c.arch from contributed c where trimmed(c.arch) <> '') as arches) o
  order by k.namespace, k.kind, k.name
$$;
