-- Rolls up minutes between two multiples of 300 seconds, either those that were in time or those that came late, into
-- one row per container and 300 seconds; late minutes are marked as rolled up in the same statement. Returns how many
-- of them there were (docs/contract.md#compute).
-- Gauges become the mean of means, the maximum of maxima, the last value by time; counters are summed, quantiles take
-- the maximum. An existing row becomes what a single rollup of all its minutes would give; a posted row counts as one
-- minute, the newest.
-- The rows of a container are written together, so that a week of it lies on few pages. Each five minutes are sorted
-- and summed separately, so that they fit into memory.
create or replace function compute_rollup_range(from_ts timestamp, until_ts timestamp, late boolean) returns bigint
language plpgsql
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_indexscan = off
set enable_bitmapscan = on
set work_mem = '64MB'
as $$
#variable_conflict error
declare
  marked bigint;
begin
  with merged as (
    update compute_minute m set is_late = false
    where late and m.is_late and m.ts >= from_ts and m.ts < until_ts
    returning 1),
  written as (
  insert into compute_folded as e (
    container_id, ts, resolution_secs,
    cpu_usage_millis_avg, cpu_usage_millis_max, cpu_usage_millis_last,
    cpu_quota_usec, cpu_period_usec, cpu_request_millis, cpu_limit_millis,
    cpu_nr_periods, cpu_nr_throttled, cpu_throttled_usec,
    cpu_psi_some10_avg, cpu_psi_some10_max, cpu_psi_full10_avg, cpu_psi_full10_max,
    mem_current_avg, mem_current_max, mem_current_last,
    mem_working_set_avg, mem_working_set_max, mem_working_set_last,
    mem_limit, mem_request,
    mem_psi_some10_avg, mem_psi_some10_max, mem_psi_full10_avg, mem_psi_full10_max,
    mem_events_high, mem_events_max, mem_oom_kill, mem_refault, mem_pgmajfault,
    runq_count, runq_p50_us, runq_p95_us, runq_p99_us, runq_max_us, runq_overflow, runq_hist,
    parts, newest_ts)
  select
         f.container_id, b.ts, 300,
         f.cpu_usage_millis_avg, f.cpu_usage_millis_max, f.cpu_usage_millis_last,
         f.cpu_quota_usec, f.cpu_period_usec, f.cpu_request_millis, f.cpu_limit_millis,
         f.cpu_nr_periods, f.cpu_nr_throttled, f.cpu_throttled_usec,
         f.cpu_psi_some10_avg, f.cpu_psi_some10_max, f.cpu_psi_full10_avg, f.cpu_psi_full10_max,
         f.mem_current_avg, f.mem_current_max, f.mem_current_last,
         f.mem_working_set_avg, f.mem_working_set_max, f.mem_working_set_last,
         f.mem_limit, f.mem_request,
         f.mem_psi_some10_avg, f.mem_psi_some10_max, f.mem_psi_full10_avg, f.mem_psi_full10_max,
         f.mem_events_high, f.mem_events_max, f.mem_oom_kill, f.mem_refault, f.mem_pgmajfault,
         f.runq_count, f.runq_p50_us, f.runq_p95_us, f.runq_p99_us, f.runq_max_us, f.runq_overflow, f.runq_hist,
         f.parts, f.newest_ts
  from (
    select g.ts from generate_series(from_ts, until_ts - interval '1 us', interval '300 s') g(ts) where not late
    union all
    select distinct date_bin('300 s', l.ts, '0001-01-01') from compute_minute l
    where late and l.is_late and l.ts >= from_ts and l.ts < until_ts) b
  cross join lateral (
    select
           m.container_id,
           avg(compute_clamped(m.cpu_usage_millis_avg)) as cpu_usage_millis_avg,
           max(m.cpu_usage_millis_max) as cpu_usage_millis_max,
           max(m.cpu_usage_millis_last) filter (where m.is_newest) as cpu_usage_millis_last,
           max(m.cpu_quota_usec) filter (where m.is_newest) as cpu_quota_usec,
           max(m.cpu_period_usec) filter (where m.is_newest) as cpu_period_usec,
           max(m.cpu_request_millis) filter (where m.is_newest) as cpu_request_millis,
           max(m.cpu_limit_millis) filter (where m.is_newest) as cpu_limit_millis,
           compute_total(sum(m.cpu_nr_periods)) as cpu_nr_periods,
           compute_total(sum(m.cpu_nr_throttled)) as cpu_nr_throttled,
           compute_total(sum(m.cpu_throttled_usec)) as cpu_throttled_usec,
           avg(compute_clamped(m.cpu_psi_some10_avg)) as cpu_psi_some10_avg,
           max(m.cpu_psi_some10_max) as cpu_psi_some10_max,
           avg(compute_clamped(m.cpu_psi_full10_avg)) as cpu_psi_full10_avg,
           max(m.cpu_psi_full10_max) as cpu_psi_full10_max,
           round(avg(m.mem_current_avg))::bigint as mem_current_avg,
           max(m.mem_current_max) as mem_current_max,
           max(m.mem_current_last) filter (where m.is_newest) as mem_current_last,
           round(avg(m.mem_working_set_avg))::bigint as mem_working_set_avg,
           max(m.mem_working_set_max) as mem_working_set_max,
           max(m.mem_working_set_last) filter (where m.is_newest) as mem_working_set_last,
           max(m.mem_limit) filter (where m.is_newest) as mem_limit,
           max(m.mem_request) filter (where m.is_newest) as mem_request,
           avg(compute_clamped(m.mem_psi_some10_avg)) as mem_psi_some10_avg,
           max(m.mem_psi_some10_max) as mem_psi_some10_max,
           avg(compute_clamped(m.mem_psi_full10_avg)) as mem_psi_full10_avg,
           max(m.mem_psi_full10_max) as mem_psi_full10_max,
           compute_total(sum(m.mem_events_high)) as mem_events_high,
           compute_total(sum(m.mem_events_max)) as mem_events_max,
           compute_total(sum(m.mem_oom_kill)) as mem_oom_kill,
           compute_total(sum(m.mem_refault)) as mem_refault,
           compute_total(sum(m.mem_pgmajfault)) as mem_pgmajfault,
           compute_total(sum(m.runq_count)) as runq_count,
           max(m.runq_p50_us) as runq_p50_us,
           max(m.runq_p95_us) as runq_p95_us,
           max(m.runq_p99_us) as runq_p99_us,
           max(m.runq_max_us) as runq_max_us,
           compute_total(sum(m.runq_overflow)) as runq_overflow,
           (array[
             coalesce(compute_total(sum(m.runq_hist[1])), 0), coalesce(compute_total(sum(m.runq_hist[2])), 0),
             coalesce(compute_total(sum(m.runq_hist[3])), 0),
             coalesce(compute_total(sum(m.runq_hist[4])), 0), coalesce(compute_total(sum(m.runq_hist[5])), 0),
             coalesce(compute_total(sum(m.runq_hist[6])), 0),
             coalesce(compute_total(sum(m.runq_hist[7])), 0), coalesce(compute_total(sum(m.runq_hist[8])), 0),
             coalesce(compute_total(sum(m.runq_hist[9])), 0),
             coalesce(compute_total(sum(m.runq_hist[10])), 0), coalesce(compute_total(sum(m.runq_hist[11])), 0),
             coalesce(compute_total(sum(m.runq_hist[12])), 0),
             coalesce(compute_total(sum(m.runq_hist[13])), 0), coalesce(compute_total(sum(m.runq_hist[14])), 0),
             coalesce(compute_total(sum(m.runq_hist[15])), 0),
             coalesce(compute_total(sum(m.runq_hist[16])), 0), coalesce(compute_total(sum(m.runq_hist[17])), 0),
             coalesce(compute_total(sum(m.runq_hist[18])), 0),
             coalesce(compute_total(sum(m.runq_hist[19])), 0), coalesce(compute_total(sum(m.runq_hist[20])), 0),
             coalesce(compute_total(sum(m.runq_hist[21])), 0),
             coalesce(compute_total(sum(m.runq_hist[22])), 0), coalesce(compute_total(sum(m.runq_hist[23])), 0),
             coalesce(compute_total(sum(m.runq_hist[24])), 0)])[1:max(cardinality(m.runq_hist))] as runq_hist,
           count(*) as parts,
           max(m.ts) as newest_ts
    from (
      select n.*, row_number() over (partition by n.container_id order by n.ts desc, n.id desc) = 1 as is_newest
      from compute_minute n
      where n.ts >= b.ts and n.ts < b.ts + interval '300 s' and n.is_late = late) m
    group by m.container_id) f
  order by f.container_id, b.ts
  on conflict (container_id, ts, resolution_secs) do update set
    cpu_usage_millis_avg = compute_mean(e.cpu_usage_millis_avg, e.parts, excluded.cpu_usage_millis_avg, excluded.parts),
    cpu_usage_millis_max = greatest(e.cpu_usage_millis_max, excluded.cpu_usage_millis_max),
    cpu_usage_millis_last = case when excluded.newest_ts >= e.newest_ts then excluded.cpu_usage_millis_last
      else e.cpu_usage_millis_last end,
    cpu_quota_usec = case when excluded.newest_ts >= e.newest_ts then excluded.cpu_quota_usec else e.cpu_quota_usec end,
    cpu_period_usec = case when excluded.newest_ts >= e.newest_ts then excluded.cpu_period_usec
      else e.cpu_period_usec end,
    cpu_request_millis = case when excluded.newest_ts >= e.newest_ts then excluded.cpu_request_millis
      else e.cpu_request_millis end,
    cpu_limit_millis = case when excluded.newest_ts >= e.newest_ts then excluded.cpu_limit_millis
      else e.cpu_limit_millis end,
    cpu_nr_periods = compute_added(e.cpu_nr_periods, excluded.cpu_nr_periods),
    cpu_nr_throttled = compute_added(e.cpu_nr_throttled, excluded.cpu_nr_throttled),
    cpu_throttled_usec = compute_added(e.cpu_throttled_usec, excluded.cpu_throttled_usec),
    cpu_psi_some10_avg = compute_mean(e.cpu_psi_some10_avg, e.parts, excluded.cpu_psi_some10_avg, excluded.parts),
    cpu_psi_some10_max = greatest(e.cpu_psi_some10_max, excluded.cpu_psi_some10_max),
    cpu_psi_full10_avg = compute_mean(e.cpu_psi_full10_avg, e.parts, excluded.cpu_psi_full10_avg, excluded.parts),
    cpu_psi_full10_max = greatest(e.cpu_psi_full10_max, excluded.cpu_psi_full10_max),
    mem_current_avg = compute_mean(e.mem_current_avg, e.parts, excluded.mem_current_avg, excluded.parts),
    mem_current_max = greatest(e.mem_current_max, excluded.mem_current_max),
    mem_current_last = case when excluded.newest_ts >= e.newest_ts then excluded.mem_current_last
      else e.mem_current_last end,
    mem_working_set_avg = compute_mean(e.mem_working_set_avg, e.parts, excluded.mem_working_set_avg, excluded.parts),
    mem_working_set_max = greatest(e.mem_working_set_max, excluded.mem_working_set_max),
    mem_working_set_last = case when excluded.newest_ts >= e.newest_ts then excluded.mem_working_set_last
      else e.mem_working_set_last end,
    mem_limit = case when excluded.newest_ts >= e.newest_ts then excluded.mem_limit else e.mem_limit end,
    mem_request = case when excluded.newest_ts >= e.newest_ts then excluded.mem_request else e.mem_request end,
    mem_psi_some10_avg = compute_mean(e.mem_psi_some10_avg, e.parts, excluded.mem_psi_some10_avg, excluded.parts),
    mem_psi_some10_max = greatest(e.mem_psi_some10_max, excluded.mem_psi_some10_max),
    mem_psi_full10_avg = compute_mean(e.mem_psi_full10_avg, e.parts, excluded.mem_psi_full10_avg, excluded.parts),
    mem_psi_full10_max = greatest(e.mem_psi_full10_max, excluded.mem_psi_full10_max),
    mem_events_high = compute_added(e.mem_events_high, excluded.mem_events_high),
    mem_events_max = compute_added(e.mem_events_max, excluded.mem_events_max),
    mem_oom_kill = compute_added(e.mem_oom_kill, excluded.mem_oom_kill),
    mem_refault = compute_added(e.mem_refault, excluded.mem_refault),
    mem_pgmajfault = compute_added(e.mem_pgmajfault, excluded.mem_pgmajfault),
    runq_count = compute_added(e.runq_count, excluded.runq_count),
    runq_p50_us = greatest(e.runq_p50_us, excluded.runq_p50_us),
    runq_p95_us = greatest(e.runq_p95_us, excluded.runq_p95_us),
    runq_p99_us = greatest(e.runq_p99_us, excluded.runq_p99_us),
    runq_max_us = greatest(e.runq_max_us, excluded.runq_max_us),
    runq_overflow = compute_added(e.runq_overflow, excluded.runq_overflow),
    runq_hist = compute_added(e.runq_hist, excluded.runq_hist),
    parts = e.parts + excluded.parts,
    newest_ts = greatest(e.newest_ts, excluded.newest_ts))
  select count(*) into marked from merged;
  return marked;
end
$$;
