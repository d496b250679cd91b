-- The nodes of live pods, and those that posted facts, whose name is or begins with a text (docs/contract.md#search).
create or replace function search_nodes(asked text, prefixes boolean, max_looked integer)
returns table (running boolean, place integer, key text, hit json)
language sql stable
as $$
  with recursive bounds as materialized (
    select asked as low, case when prefixes then prefix_end(asked) else asked || chr(1) end as high),
  pods (name, n) as (
    (select p.node_name, 1 from bounds b cross join lateral (
       select p.node_name from pod p where not p.is_dead and p.node_name >= b.low and p.node_name < b.high
       order by p.node_name limit 1) p)
    union all
    select p.node_name, c.n + 1 from pods c cross join bounds b cross join lateral (
      select p.node_name from pod p where not p.is_dead and p.node_name > c.name and p.node_name < b.high
      order by p.node_name limit 1) p
    where c.n < max_looked),
  found as materialized (
    select f.name
    from (select p.name from pods p
          union
          (select n.node_name from node_facts n cross join bounds b where n.node_name >= b.low and n.node_name < b.high
           order by n.node_name limit max_looked)) f
    order by f.name
    limit max_looked)
  select exists (select from pod p where p.node_name = f.name and not p.is_dead),
         case when f.name = asked then 0 else 2 end, f.name, json_build_object('type', 'node', 'name', f.name)
  from found f
$$;
