-- Looks at the next edges for the job `flow-edges` (docs/contract.md#retention): forgets reporting pods that are gone
-- and whose last new flow is older than `days`, and edges that are as old and have no other pod. A living pod, silent
-- or not, never reports a flow twice, so it keeps its edges. The caller holds the lock of the job. Returns how many
-- edges were deleted.
create or replace function expire_flow_edges(days int, at_once int) returns bigint
language sql strict
as $$
  with now as materialized (
    select c.swept_id, clock_timestamp() at time zone 'utc' - make_interval(days => expire_flow_edges.days) as until
    from flow_edge_cursor c),
  looked_at as materialized (
    select e.id, e.last_new_at from flow_edge e where e.id > (select n.swept_id from now n)
    order by e.id limit at_once),
  reporters as materialized (
    select l.id, p.pod_name,
           p.last_new_at < (select n.until from now n)
             and not exists (select from pod o where o.pod_name = p.pod_name and may_be_alive(o)) as is_gone
    from looked_at l
    cross join lateral (select p.* from flow_edge_pod p where p.edge_id = l.id offset 0) p),
  gone as (
    delete from flow_edge_pod p using reporters o
    where o.is_gone and p.edge_id = o.id and p.pod_name = o.pod_name),
  remaining as materialized (
    select l.id, count(o.pod_name) filter (where not o.is_gone) as pods,
           count(o.pod_name) filter (where o.is_gone) as gone,
           l.last_new_at < (select n.until from now n) as is_old
    from looked_at l
    left join reporters o on o.id = l.id
    group by l.id, l.last_new_at),
  fewer as (
    update flow_edge e set pods = o.pods from remaining o
    where e.id = o.id and o.gone > 0 and not (o.is_old and o.pods = 0)),
  deleted as (
    delete from flow_edge e using remaining o where e.id = o.id and o.is_old and o.pods = 0 returning 1),
  moved as (
    update flow_edge_cursor c
    set complete_since = greatest(c.complete_since, (select n.until from now n)),
        swept_id = coalesce((select l.id from looked_at l order by l.id offset at_once - 1 limit 1),
                            '00000000-0000-0000-0000-000000000000'))
  select count(*) from deleted
$$;
