-- The workloads whose name is or begins with a text: of a namespace and a kind (in lower case), null for any. Of all
-- pods that are known, and of all containers in the inventory (docs/contract.md#search). Both tables are walked from
-- namespace and kind to the next, since their indexes do not begin with the name.
create or replace function search_workloads(of_namespace text, of_kind text, asked text, prefixes boolean,
                                            max_looked integer, window_secs integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable
as $$
  with recursive containers (namespace, kind) as (
    (select w.pod_namespace, w.workload_kind from workload_container w
     where w.pod_namespace >= coalesce(of_namespace, '')
     order by w.pod_namespace, w.workload_kind limit 1)
    union all
    select n.pod_namespace, n.workload_kind
    from containers c
    cross join lateral (
      select w.pod_namespace, w.workload_kind from workload_container w
      where (w.pod_namespace, w.workload_kind) > (c.namespace, c.kind)
      order by w.pod_namespace, w.workload_kind limit 1) n
    where of_namespace is null or c.namespace = of_namespace),
  pods (namespace, kind) as (
    (select p.pod_namespace, p.workload_kind from pod p
     where p.workload_kind is not null and p.workload_name is not null and p.pod_namespace >= coalesce(of_namespace, '')
     order by p.pod_namespace, p.workload_kind limit 1)
    union all
    select n.pod_namespace, n.workload_kind
    from pods c
    cross join lateral (
      select p.pod_namespace, p.workload_kind from pod p
      where p.workload_kind is not null and p.workload_name is not null
        and (p.pod_namespace, p.workload_kind) > (c.namespace, c.kind)
      order by p.pod_namespace, p.workload_kind limit 1) n
    where of_namespace is null or c.namespace = of_namespace),
  places as materialized (
    select k.namespace, k.kind
    from (select c.namespace, c.kind from containers c union select p.namespace, p.kind from pods p) k
    where (of_namespace is null or k.namespace = of_namespace) and (of_kind is null or lower(k.kind) = of_kind)),
  found as materialized (
    select k.namespace, k.kind, n.name
    from places k
    cross join lateral (
      (select distinct w.workload_name as name from workload_container w
       where w.pod_namespace = k.namespace and w.workload_kind = k.kind and w.workload_name >= asked
         and w.workload_name < case when prefixes then prefix_end(asked) else asked || chr(1) end
       order by w.workload_name limit max_looked)
      union
      (select distinct p.workload_name from pod p
       where p.pod_namespace = k.namespace and p.workload_kind = k.kind and p.workload_name >= asked
         and p.workload_name < case when prefixes then prefix_end(asked) else asked || chr(1) end
       order by p.workload_name limit max_looked)) n
    order by n.name <> asked, k.namespace, k.kind, n.name
    limit max_looked)
  select exists (
           select from workload_container w
           where w.pod_namespace = f.namespace and w.workload_kind = f.kind and w.workload_name = f.name
             and is_running(w, window_secs))
         or exists (select from live_pods_of(f.namespace, f.kind, f.name)),
         case when f.name = asked then 0 else 2 end,
         concat_ws('/', f.namespace, f.kind, f.name), json_build_object(
           'type', 'workload', 'namespace', f.namespace, 'kind', f.kind, 'name', f.name)
  from found f
$$;
