-- The heaviest waits since then, at most `per_victim` of each container of a node, and `max_rows` in all: by the container's uid, then the heaviest
-- first. By the index of these alone, days in which a container waited a hundred thousand times cost no more than others; without statistics that are
-- true the planner would rather sort all of them.
create or replace function compute_heaviest(of_node text, of_namespace text, since timestamp, per_victim bigint, max_rows bigint)
returns table (container_id bigint, pair compute_contention)
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_sort = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict error
begin
  return query
    select c.id, p.pair
    from compute_container c
    cross join lateral (
      select p as pair, p.wait_ns, p.id
      from compute_contention p
      where p.victim_id = c.id and p.ts >= since
      order by p.wait_ns desc, p.id desc
      limit per_victim) p
    where c.node = of_node and (of_namespace is null or c.namespace = of_namespace)
    order by c.container_uid, p.wait_ns desc, p.id desc
    limit max_rows;
end
$$;
