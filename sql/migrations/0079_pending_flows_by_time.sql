-- no-transaction: The key of pending flows from 0080 on.
create unique index concurrently if not exists flow_edge_pending_by_flow on flow_edge_pending (uuid, time_stamp);
