-- Records for each port of each service the workload behind it and the port that its pods listen on, for the job
-- `flow-edges` (docs/contract.md#flow-edges): where the living pods that the service selects are of one workload. A
-- service that selects pods of several has none; one that selects no pod now keeps what was recorded. Returns how many
-- rows changed. Null without the lock of the job.
create or replace function record_service_backends(is_held boolean) returns bigint
language sql strict
as $$
  with services as materialized (
    select distinct on (s.svc_namespace, s.svc_name) s.svc_namespace, s.svc_name,
           s.service_spec #> '{spec,ports}' as ports, s.service_spec #> '{spec,selector}' as selector
    from service s
    where is_held and s.svc_namespace is not null and s.svc_name is not null
    order by s.svc_namespace, s.svc_name, s.time_stamp desc, s.svc_ip),
  selecting as materialized (
    select s.svc_namespace, s.svc_name, s.ports, l.labels
    from services s
    cross join lateral (
      select jsonb_object_agg(v.key, v.value #>> '{}') filter (where json_typeof(v.value) = 'string') as labels,
             bool_and(json_typeof(v.value) = 'string') as is_valid
      from json_each(case when json_typeof(s.selector) = 'object' then s.selector end) v) l
    where l.is_valid),
  -- Most pods of a workload have the same labels: these are compared once.
  living as materialized (
    select p.pod_namespace, o.workload_kind, o.workload_name, l.labels, max(p.started_at) as started_at,
           (array_agg(p.pod_name order by p.started_at desc nulls last, p.pod_name))[1] as newest
    from pod p
    cross join lateral pod_of_flow(p.pod_name) o
    cross join lateral (
      select l.labels from pod_labels l where l.pod_namespace = p.pod_namespace and l.pod_name = p.pod_name
      order by l.since desc limit 1) l
    where not p.is_dead and p.pod_namespace in (select s.svc_namespace from selecting s)
    group by p.pod_namespace, o.workload_kind, o.workload_name, l.labels),
  selected as materialized (
    select s.svc_namespace, s.svc_name, min(p.workload_kind) as workload_kind, min(p.workload_name) as workload_name,
           count(distinct row(p.workload_kind, p.workload_name)) = 1 and count(p.workload_name) = count(*) as is_one,
           (array_agg(p.newest order by p.started_at desc nulls last, p.newest))[1] as newest
    from selecting s
    join living p on p.pod_namespace = s.svc_namespace and p.labels @> s.labels
    group by s.svc_namespace, s.svc_name),
  backends as materialized (
    select distinct on (s.svc_namespace, s.svc_name, b.port, b.protocol)
           s.svc_namespace, s.svc_name, b.port, b.protocol, c.workload_kind, c.workload_name, t.target_port
    from selected c
    join selecting s on s.svc_namespace = c.svc_namespace and s.svc_name = c.svc_name
    cross join lateral json_array_elements(case when json_typeof(s.ports) = 'array' then s.ports end) v
    cross join lateral (
      select v.value ->> 'port' as port, coalesce(v.value ->> 'protocol', 'TCP') as protocol,
             coalesce(v.value ->> 'targetPort', v.value ->> 'port') as target) b
    cross join lateral (
      select case when b.target ~ '^[0-9]{1,5}$' then b.target
                  -- Earlier releases stored names without a protocol.
                  else (select coalesce(p.named_ports ->> concat_ws('/', b.target, b.protocol),
                                        p.named_ports ->> b.target)
                        from pod p where p.pod_name = c.newest) end as target_port) t
    where c.is_one and t.target_port is not null and b.port ~ '^[0-9]{1,5}$' and b.protocol in ('TCP', 'UDP', 'SCTP')
    order by s.svc_namespace, s.svc_name, b.port, b.protocol),
  written as (
    insert into service_backend as o
      (svc_namespace, svc_name, port, protocol, workload_kind, workload_name, target_port)
    select b.* from backends b
    on conflict (svc_namespace, svc_name, port, protocol) do update set
      workload_kind = excluded.workload_kind,
      workload_name = excluded.workload_name,
      target_port   = excluded.target_port
    where (o.workload_kind, o.workload_name, o.target_port)
      is distinct from (excluded.workload_kind, excluded.workload_name, excluded.target_port)
    returning 1),
  deleted as (
    delete from service_backend o
    using selected c
    where o.svc_namespace = c.svc_namespace and o.svc_name = c.svc_name
      and not exists (select from backends b
                      where b.svc_namespace = o.svc_namespace and b.svc_name = o.svc_name and b.port = o.port
                        and b.protocol = o.protocol)
    returning 1),
  -- Edges are others then, as by another count.
  noted as (
    update flow_edge_cursor c set backends_at = n.moment, counted_at = n.moment
    from (select clock_timestamp() at time zone 'utc' as moment offset 0) n
    where exists (select from written) or exists (select from deleted))
  select (select count(*) from written) + (select count(*) from deleted)
$$;
