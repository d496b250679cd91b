-- The key of a flow is its time and its uuid (docs/contract.md#deduplication).
alter table traffic
  drop constraint traffic_pkey,
  add constraint traffic_pkey primary key using index traffic_by_time;
alter table flow_edge_pending
  drop constraint flow_edge_pending_pkey,
  add constraint flow_edge_pending_pkey primary key using index flow_edge_pending_by_flow;
