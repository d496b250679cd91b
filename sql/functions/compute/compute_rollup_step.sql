-- Rolls up the first hour that waits, or as many multiples of 300 seconds of it as hold at most `max_minutes` minutes,
-- at least one, and moves the line there. Minutes before `kept_from` are skipped. Returns how many minutes and
-- multiples of 300 seconds these were.
create or replace function compute_rollup_step(kept_from timestamp, until_ts timestamp, max_minutes bigint)
returns table (minutes bigint, buckets integer, is_last boolean)
language plpgsql strict
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_indexscan = off
set enable_bitmapscan = on
set work_mem = '64MB'
as $$
#variable_conflict error
declare
  line timestamp;
  end_ts timestamp;
  first_ts timestamp;
  hour_end timestamp;
  next_line timestamp;
  folded bigint;
begin
  select f.folded_until, least(f.closed_until, until_ts) into strict line, end_ts from compute_fold f for update;
  first_ts := case when line < end_ts then compute_first_minute(greatest(line, kept_from), end_ts) end;
  if first_ts is null then
    update compute_fold f set folded_until = end_ts where f.folded_until < end_ts;
    return query select 0::bigint, 0, true;
    return;
  end if;

  hour_end := least(date_trunc('hour', first_ts) + interval '1 hour', end_ts);
  select max(c.minutes) filter (where c.is_fit),
         case when bool_and(c.is_fit) then hour_end else max(c.until_ts) filter (where c.is_fit) end
  into folded, next_line
  from (
    select b.ts + interval '300 s' as until_ts, sum(b.minutes) over w as minutes, sum(b.minutes) over w <= max_minutes
           or row_number() over w = 1 as is_fit
    from (
      select date_bin('300 s', m.ts, '0001-01-01') as ts, count(*) as minutes
      from compute_minute m
      where m.ts >= first_ts and m.ts < hour_end and not m.is_late
      group by 1) b
    window w as (order by b.ts)) c;
  perform compute_rollup_range(first_ts, next_line, false);
  update compute_fold f set folded_until = next_line;
  return query select folded, (extract(epoch from next_line - first_ts) / 300)::integer, next_line >= end_ts;
end
$$;
