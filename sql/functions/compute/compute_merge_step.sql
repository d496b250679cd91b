-- Merges the oldest late minutes into their rows, as far as these minutes are rolled up at all: about `max_minutes`,
-- and all of the same 300 seconds together. Returns how many there were.
create or replace function compute_merge_step(kept_from timestamp, until_ts timestamp, max_minutes bigint)
returns table (minutes bigint, is_last boolean)
language plpgsql strict
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict error
declare
  end_ts timestamp;
  first_ts timestamp;
  last_ts timestamp;
  found_minutes bigint;
begin
  select least(f.folded_until, until_ts) into strict end_ts from compute_fold f for update;
  select date_bin('300 s', min(l.ts), '0001-01-01'), date_bin('300 s', max(l.ts), '0001-01-01') + interval '300 s',
         count(*)
  into first_ts, last_ts, found_minutes
  from (
    select m.ts from compute_minute m
    where m.is_late and m.ts >= kept_from and m.ts < end_ts
    order by m.ts
    limit max_minutes) l;
  return query
    select case when found_minutes = 0 then 0 else compute_rollup_range(first_ts, last_ts, true) end,
           found_minutes < max_minutes;
end
$$;
