-- A flow keeps the workload and node that its pod had when it was seen, since nothing says so months later
-- (docs/contract.md#attribution). `tx` is the transaction that last wrote the row, so that a reader can take rows in an
-- order that no later commit changes. A row that was written again, since more became known, has in `first_tx` the
-- transaction that inserted it. Rows from before have nulls.
alter table traffic
  add column pod_workload_kind text collate "C",
  add column pod_workload_name text collate "C",
  add column pod_node_name     text collate "C",
  add column tx                xid8,
  add column first_tx          xid8;

-- Not in `add column`, which would give the number of this transaction to every row.
alter table traffic alter column tx set default pg_current_xact_id();

-- Whether the manifest names an owner, so that a pod without one is told from a pod whose workload is not known yet.
alter table pod add column has_owner boolean;
