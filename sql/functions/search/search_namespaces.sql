-- The namespaces of pods, containers and services whose name is or begins with a text (docs/contract.md#search). Each
-- table is walked from one namespace to the next.
create or replace function search_namespaces(asked text, prefixes boolean, max_looked integer, window_secs integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable
as $$
  with recursive bounds as materialized (
    select asked as low, case when prefixes then prefix_end(asked) else asked || chr(1) end as high),
  pods (name, n) as (
    (select p.pod_namespace, 1 from bounds b cross join lateral (
       select p.pod_namespace from pod p where p.pod_namespace >= b.low and p.pod_namespace < b.high
       order by p.pod_namespace limit 1) p)
    union all
    select p.pod_namespace, c.n + 1 from pods c cross join bounds b cross join lateral (
      select p.pod_namespace from pod p where p.pod_namespace > c.name and p.pod_namespace < b.high
      order by p.pod_namespace limit 1) p
    where c.n < max_looked),
  containers (name, n) as (
    (select p.pod_namespace, 1 from bounds b cross join lateral (
       select p.pod_namespace from workload_container p where p.pod_namespace >= b.low and p.pod_namespace < b.high
       order by p.pod_namespace limit 1) p)
    union all
    select p.pod_namespace, c.n + 1 from containers c cross join bounds b cross join lateral (
      select p.pod_namespace from workload_container p where p.pod_namespace > c.name and p.pod_namespace < b.high
      order by p.pod_namespace limit 1) p
    where c.n < max_looked),
  services (name, n) as (
    (select p.svc_namespace, 1 from bounds b cross join lateral (
       select p.svc_namespace from service p where p.svc_namespace >= b.low and p.svc_namespace < b.high
       order by p.svc_namespace limit 1) p)
    union all
    select p.svc_namespace, c.n + 1 from services c cross join bounds b cross join lateral (
      select p.svc_namespace from service p where p.svc_namespace > c.name and p.svc_namespace < b.high
      order by p.svc_namespace limit 1) p
    where c.n < max_looked),
  found as materialized (
    select f.name
    from (select p.name from pods p union select c.name from containers c union select s.name from services s) f
    order by f.name
    limit max_looked)
  select exists (select from pod p where p.pod_namespace = f.name and not p.is_dead)
           or exists (select from workload_container w where w.pod_namespace = f.name and is_running(w, window_secs)),
         case when f.name = asked then 0 else 2 end, f.name,
         json_build_object('type', 'namespace', 'namespace', f.name)
  from found f
$$;
