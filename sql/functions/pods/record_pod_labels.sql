-- Records the labels and the node that these pods have now, by their row (docs/contract.md#flow-queries). `begun` has
-- those of the names that belong to a pod whose labels were not recorded before: they hold since its start.
-- A row that says the same already is written again, so that retention, which may be deleting it, sees that it is used.
create or replace function record_pod_labels(names text[], begun text[]) returns void
language sql
as $$
  insert into pod_labels as l (pod_namespace, pod_name, since, labels, node_name)
  select p.pod_namespace, p.pod_name,
         case when e.labels = n.labels and e.node_name = p.node_name and (e.since >= n.start or p.started_at is null)
                then e.since
              when e.since is null or e.since < n.start and p.pod_name = any (begun) then n.start
              else p.time_stamp end,
         n.labels, p.node_name
  from pod p
  cross join lateral (select p.pod_obj #> '{metadata,labels}' as posted) m
  cross join lateral (
    select least(p.started_at, p.time_stamp) as start,
           coalesce((select jsonb_object_agg(v.key, v.value #>> '{}')
                     from json_each(case when json_typeof(m.posted) = 'object' then m.posted end) v
                     where json_typeof(v.value) = 'string'), '{}') as labels) n
  left join lateral (
    select e.since, e.labels, e.node_name
    from pod_labels e
    where e.pod_namespace = p.pod_namespace and e.pod_name = p.pod_name and e.since <= p.time_stamp
    order by e.since desc
    limit 1) e on true
  where p.pod_name = any (names) and trimmed(p.pod_namespace) <> ''
  order by 1, 2
  on conflict (pod_namespace, pod_name, since) do update set labels = excluded.labels, node_name = excluded.node_name
$$;
