-- Ingest stores the peer with each flow. Three unique indexes detect duplicates, also between concurrent posts: one
-- compares all six values, and for UDP two more leave out one of the ports (docs/contract.md#deduplication).
create table traffic (
  uuid                text collate "C" primary key,
  pod_name            text collate "C",
  pod_namespace       text collate "C",
  pod_ip              text collate "C",
  pod_port            text collate "C",
  ip_protocol         text collate "C",
  traffic_type        text collate "C",
  traffic_in_out_ip   text collate "C",
  traffic_in_out_port text collate "C",
  decision            text collate "C",
  time_stamp          timestamp not null,
  peer_kind           text,
  peer_namespace      text,
  peer_name           text,
  peer_uid            text,
  peer_workload_kind  text,
  peer_workload_name  text,
  peer_resolved_at    timestamp,
  drop_cause          text,
  syn_retries         bigint
) with (fillfactor = 95);

-- The two ports come last, because UDP flows are also looked up without one of them.
create unique index traffic_flow
  on traffic (pod_ip, traffic_in_out_ip, traffic_type, decision, pod_port, traffic_in_out_port);
create unique index traffic_udp_any_pod_port
  on traffic (pod_ip, traffic_in_out_ip, traffic_type, decision, traffic_in_out_port)
  where ip_protocol = 'UDP';
create unique index traffic_udp_any_peer_port
  on traffic (pod_ip, traffic_in_out_ip, traffic_type, decision, pod_port)
  where ip_protocol = 'UDP';

create index traffic_newest on traffic (time_stamp desc, uuid desc);
create index traffic_by_pod on traffic (pod_name, time_stamp desc, uuid desc);
