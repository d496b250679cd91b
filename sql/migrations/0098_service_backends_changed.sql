-- When a workload behind a service last became known, or another one. Edges change by that without a count, and a
-- reader of pages must not miss them (docs/contract.md#flow-edges).
alter table flow_edge_cursor add column backends_at timestamp not null default '-infinity';
