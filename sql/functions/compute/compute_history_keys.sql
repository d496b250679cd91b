-- The times since a moment at which a container has rows of history; minutes before the line are rolled up, except late
-- ones. A bitmap scan requests many pages from disk at once, an index scan would read each minute from a page of its
-- own.
create or replace function compute_history_keys(of_container bigint, since timestamp, line timestamp)
returns table (ts timestamp, id bigint)
language plpgsql stable strict rows 100
set enable_bitmapscan = on
set enable_indexscan = off
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
    select m.ts, m.id from compute_minute m where m.container_id = of_container and m.ts >= since
           and (m.ts >= line or m.is_late)
    union all
    select f.ts, f.id from compute_folded f where f.container_id = of_container and f.ts >= since;
end
$$;
