-- Flows that are older than this may have changed after they were counted: how long the peer of a flow may become known
-- was raised then, by a new value of PEER_LATE_RESOLVE_WINDOW_SECS. `open_secs` is the last one that was used.
alter table flow_edge_cursor
  add column open_secs      float8,
  add column complete_since timestamp not null default '-infinity';
