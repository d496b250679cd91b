-- Counts the minutes of the first hour that waits, or the first `max_secs` of it, and moves the line there. Minutes
-- before `kept_from` are skipped. Returns how many there were.
create or replace function compute_count_step(kept_from timestamp, until_ts timestamp, max_secs bigint)
returns table (minutes bigint, is_last boolean)
language plpgsql strict
as $$
#variable_conflict error
declare
  line timestamp;
  end_ts timestamp;
  first_ts timestamp;
  next_line timestamp;
  counted bigint;
begin
  select f.counted_until, least(f.count_closed_until, until_ts) into strict line, end_ts from compute_fold f for update;
  first_ts := case when line < end_ts then compute_first_minute(greatest(line, kept_from), end_ts) end;
  if first_ts is null then
    update compute_fold f set counted_until = end_ts where f.counted_until < end_ts;
    return query select 0::bigint, true;
    return;
  end if;
  next_line := least(first_ts + make_interval(secs => max_secs), date_trunc('hour', first_ts) + interval '1 hour',
                     end_ts);
  counted := compute_count_range(first_ts, next_line, kept_from, 0);
  update compute_fold f set counted_until = next_line;
  return query select counted, next_line >= end_ts;
end
$$;

-- Counts at most `max_minutes` of the minutes that came late, as far as their hours are counted at all. Returns how
-- many there were.
create or replace function compute_count_late_step(kept_from timestamp, max_minutes bigint)
returns table (minutes bigint, is_last boolean)
language plpgsql strict
as $$
#variable_conflict error
declare
  line timestamp;
  counted bigint;
begin
  select f.counted_until into strict line from compute_fold f for update;
  counted := compute_count_range('-infinity', line, kept_from, max_minutes);
  return query select counted, counted < max_minutes;
end
$$;
