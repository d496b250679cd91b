-- Autovacuum waits until a fifth of a table has changed. Of fifty million flows that is ten million dead rows, about
-- three days of retention: the table and its indexes grow by as much. These tables grow with the cluster, so they are
-- vacuumed after two per cent; each time reads all indexes of the table. After five per cent of new rows, pages are
-- marked as visible to all and rows are frozen, so that this is not left to one long vacuum against wraparound. The
-- statistics are renewed after five per cent. Others read and write under the lock that this takes.
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
