-- How many statements have deleted flows: a process that remembers flows as stored forgets them when this has grown. One row, or none.
create table traffic_deletion (
  is_only    boolean primary key default true check (is_only),
  statements bigint  not null
) with (fillfactor = 50);
