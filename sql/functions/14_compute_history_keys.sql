-- When there are rows of the history of a container since then; minutes before the line are folded, but for those that came late. Pages that nobody has
-- read lately come from disk, a minute from a page of its own: by a bitmap many are asked for at once, which an index scan does not do.
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
    select m.ts, m.id from compute_minute m where m.container_id = of_container and m.ts >= since and (m.ts >= line or m.is_late)
    union all
    select f.ts, f.id from compute_folded f where f.container_id = of_container and f.ts >= since;
end
$$;
