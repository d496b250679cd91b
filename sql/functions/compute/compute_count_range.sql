-- Counts minutes by value, in a row for each container, day and setting of requests and limits
-- (docs/contract.md#sizing-of-workloads): those between two times that were not late for that, or, with `max_late`
-- above 0, at most so many of the late ones before `until_ts`, which are deleted in the same statement. Late minutes
-- before `kept_from` are only deleted. Returns how many minutes there were.
create or replace function compute_count_range(from_ts timestamp, until_ts timestamp, kept_from timestamp,
                                               max_late bigint) returns bigint
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_indexscan = off
set enable_bitmapscan = on
set enable_hashjoin = on
set work_mem = '64MB'
as $$
#variable_conflict error
declare
  counted bigint;
begin
  with late as materialized (
    delete from compute_uncounted u
    where max_late > 0
      and u.ctid = any (array(select o.ctid from compute_uncounted o where o.ts < until_ts order by o.ts limit max_late))
    returning u.*),
  day as materialized (
    select m.container_id, date_trunc('day', m.ts) as ts, m.cpu_request_millis, m.cpu_limit_millis, m.mem_request,
           m.mem_limit, min(m.ts) as first_ts, max(m.ts) as last_ts, sum(m.resolution_secs) as secs,
           max(compute_clamped(m.cpu_usage_millis_max)) as cpu_max, max(m.mem_working_set_max) as mem_max,
           compute_total(sum(m.cpu_nr_periods)) as cpu_nr_periods,
           compute_total(sum(m.cpu_nr_throttled)) as cpu_nr_throttled,
           compute_total(sum(m.mem_oom_kill)) as mem_oom_kill,
           compute_histogram(array_agg(compute_bar(m.cpu_usage_millis_avg, m.resolution_secs))) as cpu_hist,
           compute_histogram(array_agg(compute_bar(m.mem_working_set_max, m.resolution_secs))) as mem_hist,
           count(*) as minutes
    from (
      select m.container_id, m.ts, m.resolution_secs, m.cpu_usage_millis_avg, m.cpu_usage_millis_max,
             m.mem_working_set_max, m.cpu_request_millis, m.cpu_limit_millis, m.mem_request, m.mem_limit,
             m.cpu_nr_periods, m.cpu_nr_throttled, m.mem_oom_kill
      from compute_minute m
      where max_late = 0 and m.ts >= from_ts and m.ts < until_ts
        and not exists (
          select from compute_uncounted u
          where u.container_id = m.container_id and u.ts = m.ts and u.resolution_secs = m.resolution_secs)
      union all
      select l.* from late l where l.ts >= kept_from) m
    group by 1, 2, 3, 4, 5, 6),
  written as (
    insert into compute_usage as e (
      container_id, ts, cpu_request_millis, cpu_limit_millis, mem_request, mem_limit, first_ts, last_ts, secs, cpu_max,
      mem_max, cpu_nr_periods, cpu_nr_throttled, mem_oom_kill, cpu_hist, mem_hist)
    select d.container_id, d.ts, d.cpu_request_millis, d.cpu_limit_millis, d.mem_request, d.mem_limit, d.first_ts,
           d.last_ts, d.secs, d.cpu_max, d.mem_max, d.cpu_nr_periods, d.cpu_nr_throttled, d.mem_oom_kill, d.cpu_hist,
           d.mem_hist
    from day d
    order by 1, 2, 3, 4, 5, 6
    on conflict (container_id, ts, cpu_request_millis, cpu_limit_millis, mem_request, mem_limit) do update set
      first_ts         = least(e.first_ts, excluded.first_ts),
      last_ts          = greatest(e.last_ts, excluded.last_ts),
      secs             = e.secs + excluded.secs,
      cpu_max          = greatest(e.cpu_max, excluded.cpu_max),
      mem_max          = greatest(e.mem_max, excluded.mem_max),
      cpu_nr_periods   = compute_added(e.cpu_nr_periods, excluded.cpu_nr_periods),
      cpu_nr_throttled = compute_added(e.cpu_nr_throttled, excluded.cpu_nr_throttled),
      mem_oom_kill     = compute_added(e.mem_oom_kill, excluded.mem_oom_kill),
      cpu_hist         = compute_histogram(e.cpu_hist || excluded.cpu_hist),
      mem_hist         = compute_histogram(e.mem_hist || excluded.mem_hist))
  select case when max_late > 0 then (select count(*) from late) else (select coalesce(sum(d.minutes), 0) from day d) end
  into counted;
  return counted;
end
$$;
