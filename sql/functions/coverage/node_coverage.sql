-- The gaps in what is known of the nodes of a namespace, or of the cluster (a null namespace): those with a record of a
-- pod there, and for the cluster those that sent compute heartbeats or facts (docs/contract.md#coverage-report).
-- `missing` has the codes in their order. With a namespace, pods and watched containers are those there, and whether
-- the node is silent is said of the whole node. Each table is read whole, and joined once by hash.
create or replace function node_coverage(of_namespace text, stale_secs integer)
returns table (node_name text, missing text[], alive_pods bigint, watched_containers bigint, last_pod_post timestamp,
               facts_at timestamp, drained_at timestamp, detail json)
language sql stable
set enable_seqscan = on
set enable_bitmapscan = on
set enable_hashjoin = on
set enable_nestloop = off
set plan_cache_mode = auto
as $$
  with posted as materialized (
    select p.node_name, max(p.time_stamp) as last_post,
           count(*) filter (where not p.is_dead and (of_namespace is null or p.pod_namespace = of_namespace)) as alive,
           bool_or(of_namespace is null or p.pod_namespace = of_namespace) as is_listed
    from pod p
    group by p.node_name),
  listed as materialized (
    select p.node_name from posted p where p.is_listed
    union
    select c.node from compute_node c where of_namespace is null
    union
    select f.node_name from node_facts f where of_namespace is null),
  watched as materialized (
    select c.node_name, count(*) as containers,
           (array_agg(c order by c.covered_since desc, c.container_id)
              filter (where not c.exec_probe or not c.lib_probe))[1] as blind
    from runtime_coverage c
    where (of_namespace is null or c.pod_namespace = of_namespace) and not c.ended
      and is_heartbeat_current(c.last_heartbeat, c.heartbeat_secs)
    group by c.node_name)
  select l.node_name,
         array_remove(array[
           case when f.node_name is null then 'no_facts' end,
           case when p.last_post is null or p.last_post < now() at time zone 'utc' - make_interval(secs => stale_secs)
                then 'silent' end,
           case when p.alive > 0 and w.containers is null then 'no_runtime_data' end,
           case when (w.blind).container_id is not null then 'probes_missing' end,
           case when not coalesce(is_drain_current(d.capturing, d.updated_at, d.interval_seconds), false)
                then 'denials_not_watched' end], null),
         coalesce(p.alive, 0), coalesce(w.containers, 0), p.last_post, f.time_stamp, d.updated_at,
         case when (w.blind).container_id is not null
              then coverage_detail_json(
                case when (w.blind).exec_probe then 'library_probe_missing' else 'exec_probe_missing' end,
                (w.blind).container_id, (w.blind).pod_name, (w.blind).node_name, (w.blind).covered_since) end
  from listed l
  left join posted p on p.node_name = l.node_name
  left join node_facts f on f.node_name = l.node_name
  left join watched w on w.node_name = l.node_name
  left join seccomp_denial_node d on d.node_name = l.node_name
$$;
