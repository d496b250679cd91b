-- Edges of flows, which stay when their flows are deleted (docs/contract.md#flow-edges). The job `flow-edges` counts
-- flows into these rows, each flow once.

-- One row for all flows that agree in the columns up to `decision`, which `id` is a hash of. The columns have the names
-- that they have in `traffic`, so that the same filters read both. The name of a pod is kept only where its workload
-- is not known, an address only where no pod or service is.
create table flow_edge (
  id                 uuid primary key,
  traffic_type       text collate "C" not null,
  pod_namespace      text collate "C",
  pod_workload_kind  text collate "C",
  pod_workload_name  text collate "C",
  pod_name           text collate "C",
  peer_kind          text collate "C",
  peer_namespace     text collate "C",
  peer_workload_kind text collate "C",
  peer_workload_name text collate "C",
  peer_name          text collate "C",
  traffic_in_out_ip  text collate "C",
  is_public          boolean not null,
  port               text collate "C",
  ip_protocol        text collate "C",
  decision           text collate "C",
  flows              bigint not null,
  pods               bigint not null,
  first_seen_at      timestamp not null,
  last_new_at        timestamp not null,
  counted_at         timestamp not null
) with (fillfactor = 70);

create index flow_edge_by_first_seen on flow_edge (first_seen_at);

-- The pods that reported flows of an edge, of the namespace of the edge.
create table flow_edge_pod (
  edge_id     uuid,
  pod_name    text collate "C",
  last_new_at timestamp not null,
  primary key (edge_id, pod_name)
) with (fillfactor = 90);

-- Flows whose peer or workload may still become known. They are counted once it is, or when it is too late for that.
create table flow_edge_pending (
  uuid               text collate "C" primary key,
  time_stamp         timestamp not null,
  reporter           text collate "C",
  traffic_type       text collate "C" not null,
  pod_namespace      text collate "C",
  pod_workload_kind  text collate "C",
  pod_workload_name  text collate "C",
  pod_name           text collate "C",
  peer_kind          text collate "C",
  peer_namespace     text collate "C",
  peer_workload_kind text collate "C",
  peer_workload_name text collate "C",
  peer_name          text collate "C",
  traffic_in_out_ip  text collate "C",
  is_public          boolean not null,
  port               text collate "C",
  ip_protocol        text collate "C",
  decision           text collate "C",
  counted_at         timestamp not null
);

create index flow_edge_pending_by_time on flow_edge_pending (time_stamp);

-- All flows that transactions before `next_tx` inserted are counted or pending. Flows from before transactions were
-- recorded are counted in the order of time, up to this time and uuid; null once all are. Every flow that was committed
-- by `as_of` is counted. A pass that finds all transactions before `looked_tx` ended knows the same of `looked_at`.
-- The newest pass was at `counted_at`. Retention looked at edges up to `swept_id`.
create table flow_edge_cursor (
  is_only    boolean primary key default true check (is_only),
  next_tx    xid8 not null,
  time_stamp timestamp,
  uuid       text collate "C",
  as_of      timestamp,
  looked_tx  xid8,
  looked_at  timestamp,
  counted_at timestamp not null default '-infinity',
  swept_id   uuid not null default '00000000-0000-0000-0000-000000000000'
) with (fillfactor = 50);

insert into flow_edge_cursor (next_tx, time_stamp, uuid, as_of)
select '0'::xid8, case when t.is_any then '-infinity'::timestamp end, case when t.is_any then '' end,
       case when not t.is_any then now() at time zone 'utc' end
from (select exists (select from traffic) as is_any) t;

-- The one workload that a service selects, and the port that its pods listen on for each port of the service.
create table service_backend (
  svc_namespace text collate "C",
  svc_name      text collate "C",
  port          text collate "C",
  protocol      text collate "C",
  workload_kind text collate "C" not null,
  workload_name text collate "C" not null,
  target_port   text collate "C" not null,
  primary key (svc_namespace, svc_name, port, protocol)
);

-- The numbers of the ports that its containers name, by name: a service may name the port that it forwards to.
alter table pod add column named_ports jsonb;
