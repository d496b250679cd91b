-- Which pods reported older flows than this is not known: retention may have forgotten the pods, or the flows changed
-- after they were counted, because PEER_LATE_RESOLVE_WINDOW_SECS was raised. `open_secs` is how long the last pass waited
-- for the peer of a flow.
alter table flow_edge_cursor
  add column open_secs      float8,
  add column complete_since timestamp not null default '-infinity';
