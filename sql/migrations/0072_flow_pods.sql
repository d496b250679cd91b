-- Edges do not know the pods of their peers. A filter of flows by pod or label looks them up here instead of reading
-- all flows (docs/contract.md#flow-queries): each pod that a counted flow names, on either side, with each workload
-- that flows were stamped with; '' where there is none. `is_labelled`: its labels were recorded by its first flow.
create table flow_pod (
  pod_namespace text collate "C",
  pod_name      text collate "C",
  workload_kind text collate "C",
  workload_name text collate "C",
  first_flow_at timestamp not null,
  last_flow_at  timestamp not null,
  is_labelled   boolean not null,
  primary key (pod_namespace, pod_name, workload_kind, workload_name)
) with (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);

create index flow_pod_without_labels on flow_pod (first_flow_at) where not is_labelled;
create index flow_pod_by_last_flow on flow_pod (last_flow_at);

-- Flows from then on were counted when their pods were already recorded. The first pass with this table sets it.
alter table flow_edge_cursor add column pods_since timestamp not null default 'infinity';
