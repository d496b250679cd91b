-- Autovacuum waits until a fifth of a table has changed. Of fifty million flows that is ten million dead rows, about three
-- days of retention: the table and its indexes grow by as much, and readers pass over the dead entries. These tables grow
-- with the cluster, so they are vacuumed after two per cent; each time reads all indexes of the table. Rows that were only
-- added are marked as visible and frozen after five per cent, in small steps before wraparound forces a long one, and the
-- planner's statistics are at most as old. The change takes a lock under which others read and write.
alter table traffic set (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);
alter table flow_edge_pod set (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);
alter table audit_verdict set (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);
alter table image_finding set (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);
alter table image_component set (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);
