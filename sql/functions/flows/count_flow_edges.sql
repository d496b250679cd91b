-- One step of the job `flow-edges` (docs/contract.md#flow-edges): counts about `at_once` more flows and moves the
-- cursor in one statement, so that each flow counts once, whatever fails. The caller holds the lock of the job. A flow
-- may become more known for `open_secs` after its time.
--
-- A flow is new where the transaction that inserted it is in the range; it is read as it is now, also if a transaction
-- behind the range wrote it again. A flow that was inserted before the range is read only where it is pending.
create or replace function count_flow_edges(at_once int, open_secs float8)
returns table (flows bigint, is_last boolean)
language sql strict
set enable_seqscan = off
as $$
  with now as materialized (
    select c.*, clock_timestamp() at time zone 'utc' as moment, pg_snapshot_xmin(s.snapshot) as xmin,
           pg_snapshot_xmax(s.snapshot) as xmax
    from flow_edge_cursor c
    cross join (select pg_current_snapshot() as snapshot) s),
  range as materialized (
    select n.*, n.moment - make_interval(secs => count_flow_edges.open_secs) as open_since,
           case when n.xmin <= n.next_tx then n.next_tx
                -- one transaction is never divided
                else greatest(least(n.xmin, w.tx, f.tx), (n.next_tx::text::bigint + 1)::text::xid8) end as to_tx
    from now n
    left join lateral (
      select t.tx from traffic t where t.tx >= n.next_tx order by t.tx offset at_once limit 1) w on true
    left join lateral (
      select t.first_tx as tx from traffic t where t.first_tx is not null and t.first_tx >= n.next_tx
      order by t.first_tx offset at_once limit 1) f on true),
  unnumbered as materialized (
    select t.flow, (t.flow).time_stamp, (t.flow).uuid
    from range r
    cross join lateral (
      select t as flow from traffic t where (t.time_stamp, t.uuid) > (r.time_stamp, r.uuid)
      order by t.time_stamp, t.uuid
      limit case when r.time_stamp is null then 0 else at_once end) t),
  read as (
    select t.flow from range r
    cross join lateral (select t as flow from traffic t where t.tx >= r.next_tx and t.tx < r.to_tx offset 0) t
    union all
    select t.flow from range r
    cross join lateral (
      select t as flow from traffic t
      where t.first_tx is not null and t.first_tx >= r.next_tx and t.first_tx < r.to_tx and t.tx >= r.to_tx
      offset 0) t
    union all
    select u.flow from unnumbered u where (u.flow).tx is null),
  found as materialized (
    select (t.flow).uuid, (t.flow).time_stamp, (t.flow).pod_name as reporter, (t.flow).pod_ip as address,
           (t.flow).peer_namespace as namespace_of_peer, (t.flow).peer_name as name_of_peer,
           (t.flow).traffic_in_out_ip as address_of_peer, e.*, p.uuid is not null as is_pending,
           (t.flow).time_stamp >= r.open_since
             and ((t.flow).peer_kind is null and (t.flow).traffic_in_out_ip is not null
                  or (t.flow).pod_workload_name is null and (t.flow).pod_namespace is not null) as is_open
    from range r
    cross join read t
    cross join lateral edge_of_flow(t.flow) e
    left join lateral (
      select p.uuid from flow_edge_pending p
      where p.uuid = (t.flow).uuid and p.time_stamp = (t.flow).time_stamp
      offset 0) p on true
    where p.uuid is not null or coalesce((t.flow).first_tx, (t.flow).tx, r.next_tx) >= r.next_tx),
  sides as materialized (
    select 'pod' as kind, coalesce(f.pod_namespace, '') as namespace, f.reporter as name,
           coalesce(f.pod_workload_kind, '') as workload_kind, coalesce(f.pod_workload_name, '') as workload_name,
           f.address, f.time_stamp
    from found f where f.reporter is not null
    union all
    select f.peer_kind, coalesce(f.namespace_of_peer, ''), coalesce(f.name_of_peer, ''),
           coalesce(f.peer_workload_kind, ''), coalesce(f.peer_workload_name, ''), f.address_of_peer, f.time_stamp
    from found f where f.peer_kind is not null),
  named as materialized (
    select s.namespace as pod_namespace, s.name as pod_name, s.workload_kind, s.workload_name,
           min(s.time_stamp) as first_flow_at, max(s.time_stamp) as last_flow_at
    from sides s
    where s.kind in ('pod', 'node')
    group by s.namespace, s.name, s.workload_kind, s.workload_name),
  -- A pod and an address have thousands of flows; the last one is recorded again after a day.
  recorded_pods as (
    insert into flow_pod as p
      (pod_namespace, pod_name, workload_kind, workload_name, first_flow_at, last_flow_at, is_labelled)
    select n.pod_namespace, n.pod_name, n.workload_kind, n.workload_name, n.first_flow_at, n.last_flow_at,
           exists (select from pod_labels l
                   where l.pod_namespace = n.pod_namespace and l.pod_name = n.pod_name and l.since <= n.first_flow_at
                   offset 0)
    from named n
    left join lateral (
      select p.first_flow_at, p.last_flow_at from flow_pod p
      where p.pod_namespace = n.pod_namespace and p.pod_name = n.pod_name and p.workload_kind = n.workload_kind
        and p.workload_name = n.workload_name
      offset 0) p on true
    where p.first_flow_at is null or n.first_flow_at < p.first_flow_at
      or n.last_flow_at > p.last_flow_at + interval '1 day'
    on conflict (pod_namespace, pod_name, workload_kind, workload_name) do update set
      first_flow_at = least(p.first_flow_at, excluded.first_flow_at),
      last_flow_at  = greatest(p.last_flow_at, excluded.last_flow_at),
      is_labelled   = p.is_labelled and excluded.is_labelled),
  recorded_addresses as (
    insert into flow_address as a (namespace, name, kind, address, last_flow_at)
    select n.namespace, n.name, n.kind, n.address, n.last_flow_at
    from (select s.namespace, s.name, s.kind, s.address, max(s.time_stamp) as last_flow_at from sides s
          where s.address is not null
          group by s.namespace, s.name, s.kind, s.address) n
    left join lateral (
      select a.last_flow_at from flow_address a
      where a.namespace = n.namespace and a.name = n.name and a.kind = n.kind and a.address = n.address
      offset 0) a on true
    where a.last_flow_at is null or n.last_flow_at > a.last_flow_at + interval '1 day'
    on conflict (namespace, name, kind, address) do update set
      last_flow_at = greatest(a.last_flow_at, excluded.last_flow_at)),
  aged as materialized (
    select p.*
    from flow_edge_pending p
    where p.time_stamp < (select r.open_since from range r)
      and not exists (select from found f where f.uuid = p.uuid and f.time_stamp = p.time_stamp)
    order by p.time_stamp
    limit at_once),
  settled as materialized (
    select s.*, md5(row(s.traffic_type, s.pod_namespace, s.pod_workload_kind, s.pod_workload_name, s.pod_name,
                        s.peer_kind, s.peer_namespace, s.peer_workload_kind, s.peer_workload_name, s.peer_name,
                        s.traffic_in_out_ip, s.is_public, s.port, s.ip_protocol, s.decision)::text)::uuid as id
    from (select f.time_stamp, f.reporter, f.traffic_type, f.pod_namespace, f.pod_workload_kind, f.pod_workload_name,
                 f.pod_name, f.peer_kind, f.peer_namespace, f.peer_workload_kind, f.peer_workload_name, f.peer_name,
                 f.traffic_in_out_ip, f.is_public, f.port, f.ip_protocol, f.decision
          from found f where not f.is_open
          union all
          select a.time_stamp, a.reporter, a.traffic_type, a.pod_namespace, a.pod_workload_kind, a.pod_workload_name,
                 a.pod_name, a.peer_kind, a.peer_namespace, a.peer_workload_kind, a.peer_workload_name, a.peer_name,
                 a.traffic_in_out_ip, a.is_public, a.port, a.ip_protocol, a.decision
          from aged a) s),
  reporters as materialized (
    select s.id, s.reporter, s.last_new_at, p.pod_name is null as is_new
    from (select s.id, s.reporter, max(s.time_stamp) as last_new_at from settled s
          where s.reporter is not null
          group by s.id, s.reporter) s
    left join lateral (
      select p.pod_name from flow_edge_pod p where p.edge_id = s.id and p.pod_name = s.reporter offset 0) p on true),
  counted_pods as (
    insert into flow_edge_pod as p (edge_id, pod_name, last_new_at)
    select o.id, o.reporter, o.last_new_at from reporters o
    on conflict (edge_id, pod_name) do update set last_new_at = greatest(p.last_new_at, excluded.last_new_at)),
  counted as (
    insert into flow_edge as e
      (id, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, pod_name, peer_kind, peer_namespace,
       peer_workload_kind, peer_workload_name, peer_name, traffic_in_out_ip, is_public, port, ip_protocol, decision,
       flows, pods, first_seen_at, last_new_at, counted_at)
    select s.id, s.traffic_type, s.pod_namespace, s.pod_workload_kind, s.pod_workload_name, s.pod_name, s.peer_kind,
           s.peer_namespace, s.peer_workload_kind, s.peer_workload_name, s.peer_name, s.traffic_in_out_ip, s.is_public,
           s.port, s.ip_protocol, s.decision, count(*), coalesce(o.pods, 0), min(s.time_stamp), max(s.time_stamp),
           r.moment
    from settled s
    cross join range r
    left join (select o.id, count(*) as pods from reporters o where o.is_new group by o.id) o on o.id = s.id
    group by s.id, s.traffic_type, s.pod_namespace, s.pod_workload_kind, s.pod_workload_name, s.pod_name, s.peer_kind,
             s.peer_namespace, s.peer_workload_kind, s.peer_workload_name, s.peer_name, s.traffic_in_out_ip,
             s.is_public, s.port, s.ip_protocol, s.decision, o.pods, r.moment
    on conflict (id) do update set
      flows         = e.flows + excluded.flows,
      pods          = e.pods + excluded.pods,
      first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
      last_new_at   = greatest(e.last_new_at, excluded.last_new_at),
      counted_at    = excluded.counted_at),
  pending as (
    insert into flow_edge_pending
      (uuid, time_stamp, reporter, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, pod_name,
       peer_kind, peer_namespace, peer_workload_kind, peer_workload_name, peer_name, traffic_in_out_ip, is_public, port,
       ip_protocol, decision, counted_at)
    select f.uuid, f.time_stamp, f.reporter, f.traffic_type, f.pod_namespace, f.pod_workload_kind, f.pod_workload_name,
           f.pod_name, f.peer_kind, f.peer_namespace, f.peer_workload_kind, f.peer_workload_name, f.peer_name,
           f.traffic_in_out_ip, f.is_public, f.port, f.ip_protocol, f.decision, (select r.moment from range r)
    from found f where f.is_open
    on conflict (uuid, time_stamp) do update set
      pod_workload_kind  = excluded.pod_workload_kind,
      pod_workload_name  = excluded.pod_workload_name,
      pod_name           = excluded.pod_name,
      peer_kind          = excluded.peer_kind,
      peer_namespace     = excluded.peer_namespace,
      peer_workload_kind = excluded.peer_workload_kind,
      peer_workload_name = excluded.peer_workload_name,
      peer_name          = excluded.peer_name,
      traffic_in_out_ip  = excluded.traffic_in_out_ip,
      counted_at         = excluded.counted_at),
  no_longer_pending as (
    delete from flow_edge_pending p
    using (select f.uuid, f.time_stamp from found f where f.is_pending and not f.is_open
           union all select a.uuid, a.time_stamp from aged a) s
    where p.uuid = s.uuid and p.time_stamp = s.time_stamp),
  moved as (
    update flow_edge_cursor c
    set next_tx    = r.to_tx,
        time_stamp = u.time_stamp,
        uuid       = u.uuid,
        as_of      = case when u.uuid is not null then null
                          -- of another server, see renumber_restored_flows
                          when r.next_tx > r.xmax then r.as_of
                          when r.to_tx >= r.xmax then r.moment
                          when r.to_tx >= r.looked_tx then r.looked_at
                          else r.as_of end,
        counted_at = r.moment,
        pods_since = case when r.pods_since < 'infinity' then r.pods_since else s.recorded_since end,
        addresses_since = case when r.addresses_since < 'infinity' then r.addresses_since else s.recorded_since end,
        complete_since = case when count_flow_edges.open_secs > r.open_secs then r.moment else r.complete_since end,
        open_secs = count_flow_edges.open_secs,
        looked_tx  = case when r.to_tx < r.looked_tx then r.looked_tx else r.xmax end,
        looked_at  = case when r.to_tx < r.looked_tx then r.looked_at else r.moment end
    from range r
    left join lateral (
      select t.time_stamp, t.uuid from unnumbered t order by t.time_stamp, t.uuid offset at_once - 1 limit 1) u on true
    left join lateral (
      -- where nothing was counted before, all flows are counted with their pods and addresses
      select case when r.next_tx = '0' then '-infinity'
                  else greatest(r.moment, (select max(t.time_stamp) from traffic t)) end as recorded_since) s
      on 'infinity' in (r.pods_since, r.addresses_since))
  select (select count(*) from settled),
         r.to_tx = r.xmin and (select count(*) from unnumbered) < at_once and (select count(*) from aged) < at_once
  from range r
$$;
