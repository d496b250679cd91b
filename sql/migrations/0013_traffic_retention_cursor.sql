-- How far passes over old flows, and over pods with too many, have come. One row, missing or null: the next begins at the start.
create table traffic_retention_cursor (
  is_only    boolean   primary key default true check (is_only),
  time_stamp timestamp,
  uuid       text collate "C",
  pod_name   text collate "C"
) with (fillfactor = 50);
