-- Judges the containers of the next workloads: whether they were watched for the whole window, and their exposure
-- (docs/contract.md#in-use, docs/contract.md#tiers). The vulnerabilities of images whose containers
-- changed are to be counted again. `last` is where to continue, null at the end.
create or replace function judge_containers(after text, max_workloads bigint, window_hours integer)
returns table (rows bigint, last text)
language sql strict
set enable_hashjoin = on
set enable_seqscan = on
set work_mem = '32MB'
as $$
  with looked as materialized (
    select distinct w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id
    from workload_container w
    where (w.pod_namespace, w.workload_kind, w.workload_name)
          > (after::json ->> 0, after::json ->> 1, after::json ->> 2)
    order by w.pod_namespace, w.workload_kind, w.workload_name, w.cluster_id
    limit max_workloads),
  containers as materialized (
    select w.image_digest, w.pod_namespace, w.workload_kind, w.workload_name, w.container_name, w.cluster_id
    from looked l
    join workload_container w on w.pod_namespace = l.pod_namespace and w.workload_kind = l.workload_kind
      and w.workload_name = l.workload_name and w.cluster_id = l.cluster_id),
  watched as materialized (
    select l.pod_namespace, l.workload_kind, l.workload_name, l.cluster_id, c.container_name, c.image_digest,
           case when c.covered then null
                when c.reason in ('no_runtime_data', 'probes_missing', 'libraries_not_tracked') then c.reason
                else 'capture_gap' end as reason,
           case when c.covered then c.observed_since end as observed_since
    from looked l
    cross join lateral runtime_coverage_of(l.cluster_id, l.pod_namespace, l.workload_kind, l.workload_name, null, null,
                                           window_hours) c
    where exists (
      select from runtime_coverage r
      where r.pod_namespace = l.pod_namespace and r.workload_kind = l.workload_kind
        and r.workload_name = l.workload_name)),
  reached as materialized (
    select e.pod_namespace, coalesce(e.pod_workload_kind, o.workload_kind, 'Pod') as workload_kind,
           coalesce(e.pod_workload_name, o.workload_name, e.pod_name) as workload_name,
           case
             when bool_or(is_from_outside(e)) then 'exposed'
             when bool_or(e.peer_kind is null) then null
             when bool_or(e.peer_kind = 'node') then 'node_only'
             else 'internal' end as exposure
    from flow_edge e
    -- Of flows that were stored before the workload of the pod was known.
    left join lateral pod_of_flow(case when e.pod_workload_name is null then e.pod_name end) o
      on o.pod_namespace = e.pod_namespace
    where e.traffic_type = 'INGRESS' and e.last_new_at >= now() at time zone 'utc' - interval '168 hours'
      and e.pod_namespace = any (array(select distinct l.pod_namespace from looked l))
    group by 1, 2, 3),
  -- A living pod never reports a flow twice, so an older flow of one that may live counts, too. A pod that started
  -- later, under the same name, is another one; clocks may differ. One of another namespace hides whether it lives.
  reachable as materialized (
    select w.*
    from (select l.pod_namespace, l.workload_kind, l.workload_name from looked l
          except
          select r.pod_namespace, r.workload_kind, r.workload_name from reached r where r.exposure = 'exposed') w
    where exists (
      select from ingress_edges(w.pod_namespace, w.workload_kind, w.workload_name) e
      where is_from_outside(e)
        and exists (
          select from flow_edge_pod p
          cross join lateral (
            select from pod o
            where o.pod_name = p.pod_name and (not o.is_dead or o.swept_at is not null)
              and (o.pod_namespace is distinct from e.pod_namespace
                   or coalesce(o.started_at <= p.last_new_at + interval '1 hour', true))
            offset 0) o
          where p.edge_id = e.id offset 0)
      offset 0)),
  judged as materialized (
    select c.*, case when w.container_name is null then 'no_runtime_data' else w.reason end as reason,
           w.observed_since, case when o.workload_name is not null then 'exposed' else r.exposure end as exposure
    from containers c
    left join watched w on w.pod_namespace = c.pod_namespace and w.workload_kind = c.workload_kind
      and w.workload_name = c.workload_name and w.cluster_id = c.cluster_id and w.container_name = c.container_name
      and w.image_digest = c.image_digest
    left join reached r on r.pod_namespace = c.pod_namespace and r.workload_kind = c.workload_kind
      and r.workload_name = c.workload_name
    left join reachable o on o.pod_namespace = c.pod_namespace and o.workload_kind = c.workload_kind
      and o.workload_name = c.workload_name),
  changed as materialized (
    select j.*, u.image_digest is null or (u.reason is null) <> (j.reason is null)
                or u.exposure is distinct from j.exposure as is_news
    from judged j
    left join container_use u on u.image_digest = j.image_digest and u.pod_namespace = j.pod_namespace
      and u.workload_kind = j.workload_kind and u.workload_name = j.workload_name
      and u.container_name = j.container_name and u.cluster_id = j.cluster_id
    where u.image_digest is null
       or (u.reason, u.observed_since, u.exposure) is distinct from (j.reason, j.observed_since, j.exposure)),
  noted as (
    insert into use_news (image_digest, is_judged)
    select distinct c.image_digest, true from changed c where c.is_news),
  written as (
    insert into container_use as u (image_digest, pod_namespace, workload_kind, workload_name, container_name,
                                    cluster_id, reason, observed_since, exposure)
    select c.image_digest, c.pod_namespace, c.workload_kind, c.workload_name, c.container_name, c.cluster_id, c.reason,
           c.observed_since, c.exposure
    from changed c
    order by c.image_digest, c.pod_namespace, c.workload_kind, c.workload_name, c.container_name, c.cluster_id
    on conflict (image_digest, pod_namespace, workload_kind, workload_name, container_name, cluster_id) do update set
      reason = excluded.reason, observed_since = excluded.observed_since, exposure = excluded.exposure
    returning 1),
  gone as (
    delete from container_use u
    using looked l
    where u.pod_namespace = l.pod_namespace and u.workload_kind = l.workload_kind
      and u.workload_name = l.workload_name and u.cluster_id = l.cluster_id
      and not exists (
        select from containers c
        where c.image_digest = u.image_digest and c.pod_namespace = u.pod_namespace
          and c.workload_kind = u.workload_kind and c.workload_name = u.workload_name
          and c.container_name = u.container_name and c.cluster_id = u.cluster_id)
    returning 1)
  select (select count(*) from written) + (select count(*) from gone),
         case when (select count(*) from looked) = max_workloads
              then (select json_build_array(l.pod_namespace, l.workload_kind, l.workload_name)::text
                    from looked l
                    order by l.pod_namespace desc, l.workload_kind desc, l.workload_name desc
                    limit 1) end
$$;
