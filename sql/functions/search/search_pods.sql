-- The pods whose name is or begins with a text, of a namespace, null for any (docs/contract.md#search).
create or replace function search_pods(of_namespace text, asked text, prefixes boolean, max_looked integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable
as $$
  select not f.is_dead, case when f.pod_name = asked then 0 else 2 end, f.pod_name, json_build_object(
           'type', 'pod', 'namespace', f.pod_namespace, 'name', f.pod_name, 'node', f.node_name, 'address', f.pod_ip,
           'workloadKind', f.workload_kind, 'workloadName', f.workload_name)
  from (select p.* from pod p
        where p.pod_name >= asked
          and p.pod_name < case when prefixes then prefix_end(asked) else asked || chr(1) end
          and (of_namespace is null or p.pod_namespace = of_namespace)
        order by p.is_dead, p.pod_name
        limit max_looked) f
$$;
