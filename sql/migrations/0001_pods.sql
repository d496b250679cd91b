-- Each pod name has one row. Posts rewrite it every minute, so no index has a column that changes with every post:
-- PostgreSQL then leaves the indexes alone (HOT updates).
create table pod (
  pod_name                 text collate "C" primary key,
  pod_ip                   text collate "C" not null,
  pod_namespace            text collate "C",
  pod_obj                  json,
  time_stamp               timestamp not null,
  node_name                text collate "C" not null,
  is_dead                  boolean not null,
  pod_identity             text,
  workload_selector_labels json,
  pod_ips                  text[] not null,
  workload_kind            text collate "C",
  workload_name            text collate "C",
  capture_level            text,
  host_network             boolean,
  started_at               timestamp,
  pod_uid                  text
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);

create index pod_by_namespace on pod (pod_namespace, pod_name);
create index pod_by_node on pod (node_name, pod_namespace, pod_name) where not is_dead;
create index pod_namespace_alive on pod (pod_namespace) where not is_dead;
