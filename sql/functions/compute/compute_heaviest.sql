-- The heaviest waits since a time, at most `per_victim` per container of a node and `max_rows` in all, by the uid of
-- the container, the heaviest first. Of the last hours, minutes whose heaviest wait is not among the `per_victim`
-- heaviest of all minutes are skipped. By the index of these, a container that waited a hundred thousand times a day
-- costs no more than others; without accurate statistics the planner would rather sort all of them.
create or replace function compute_heaviest(of_node text, of_namespace text, since timestamp, per_victim bigint,
                                            max_rows bigint)
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
      select w.pair, w.wait_ns, w.id
      from (
        select a.pair, a.wait_ns, a.id
        from (
          select distinct h.ts
          from (
            select f.ts
            from compute_contention f
            where f.victim_id = c.id and f.ts >= since and f.is_heaviest
            order by f.wait_ns desc, f.id desc
            limit per_victim) h) m
        cross join lateral (select a as pair, a.wait_ns, a.id from compute_contention a where a.victim_id = c.id
                            and a.ts = m.ts offset 0) a
        union all
        select k.pair, k.wait_ns, k.id
        from (
          select row(a.*)::compute_contention as pair, a.wait_ns, a.id
          from compute_contention_kept a
          where a.victim_id = c.id and a.ts >= since
          order by a.wait_ns desc, a.id desc
          limit per_victim) k) w
      order by w.wait_ns desc, w.id desc
      limit per_victim) p
    where c.node = of_node and (of_namespace is null or c.namespace = of_namespace)
    order by c.container_uid, p.wait_ns desc, p.id desc
    limit max_rows;
end
$$;
