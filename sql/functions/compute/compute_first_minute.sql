-- The beginning of the first hour with a minute to count, no earlier than `from_ts`; null if there is none before
-- `until_ts`.
create or replace function compute_first_minute(from_ts timestamp, until_ts timestamp) returns timestamp
language plpgsql stable
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_indexscan = off
set enable_bitmapscan = on
as $$
#variable_conflict error
declare
  first_hour timestamp;
  days date[];
  a_day date;
  an_hour timestamp;
begin
  select date_trunc('hour', min(o.ts)) into first_hour
  from compute_minute_other o
  where o.ts >= from_ts and o.ts < until_ts and not o.is_late;

  days := array(select d.day from compute_days('compute_minute') d where d.day + 1 > from_ts and d.day < until_ts
                order by d.day);
  foreach a_day in array days loop
    for an_hour in
      select h.ts from generate_series(a_day::timestamp, a_day + interval '23 hours', interval '1 hour') h(ts)
      where h.ts + interval '1 hour' > from_ts and h.ts < until_ts
      order by h.ts
    loop
      exit when first_hour <= an_hour;
      if exists (
        select from compute_minute m
        where m.ts >= an_hour and m.ts < an_hour + interval '1 hour' and m.ts >= from_ts and m.ts < until_ts
              and not m.is_late)
      then
        first_hour := an_hour;
        exit;
      end if;
    end loop;
    exit when first_hour < a_day + 1;
  end loop;
  return case when first_hour is not null then greatest(first_hour, from_ts) end;
end
$$;
