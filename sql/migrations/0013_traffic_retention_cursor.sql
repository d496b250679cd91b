-- The row stores how far the passes over old flows, and over pods with too many flows, have come. Where it is missing
-- or null, the next pass begins at the start.
create table traffic_retention_cursor (
  is_only    boolean   primary key default true check (is_only),
  time_stamp timestamp,
  uuid       text collate "C",
  pod_name   text collate "C"
) with (fillfactor = 50);
