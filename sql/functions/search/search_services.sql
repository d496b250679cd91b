-- The services whose name is or begins with a text, of a namespace, null for any (docs/contract.md#search). A service
-- does not run. The table is walked from namespace to namespace.
create or replace function search_services(of_namespace text, asked text, prefixes boolean, max_looked integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable
as $$
  with recursive namespaces (name) as (
    (select s.svc_namespace from service s where s.svc_namespace >= coalesce(of_namespace, '')
     order by s.svc_namespace limit 1)
    union all
    select s.svc_namespace from namespaces n cross join lateral (
      select s.svc_namespace from service s where s.svc_namespace > n.name order by s.svc_namespace limit 1) s
    where of_namespace is null)
  select null::boolean, case when f.svc_name = asked then 0 else 2 end,
         concat_ws('/', f.svc_namespace, f.svc_name, f.svc_ip), json_build_object(
           'type', 'service', 'namespace', f.svc_namespace, 'name', f.svc_name, 'address', f.svc_ip)
  from (select s.*
        from namespaces n
        cross join lateral (
          select s.svc_namespace, s.svc_name, s.svc_ip from service s
          where s.svc_namespace = n.name and s.svc_name >= asked
            and s.svc_name < case when prefixes then prefix_end(asked) else asked || chr(1) end
          order by s.svc_name, s.svc_ip limit max_looked) s
        where of_namespace is null or n.name = of_namespace
        order by s.svc_name <> asked, s.svc_namespace, s.svc_name, s.svc_ip
        limit max_looked) f
$$;
