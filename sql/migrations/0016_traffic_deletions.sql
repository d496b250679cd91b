-- The row counts the statements that have deleted flows. A process that remembers stored flows forgets them when the
-- count has grown. The row is missing before the first deletion.
create table traffic_deletion (
  is_only    boolean primary key default true check (is_only),
  statements bigint  not null
) with (fillfactor = 50);
