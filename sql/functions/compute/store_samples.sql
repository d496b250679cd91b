-- Writes the latest sample of a node and of its containers over the previous ones, each once in the arrays
-- (docs/contract.md#compute). Containers come in the order of their keys and the node last, so that concurrent posts
-- queue without deadlock. A time more than five minutes ahead counts as now.
create or replace function store_samples(
  document json,
  container_uids text[], pod_uids text[], namespaces text[], pod_names text[], containers text[], cgroup_ids bigint[],
  usages float8[], quotas bigint[], periods bigint[], cpu_requests bigint[], cpu_limits bigint[], nr_periods bigint[],
  nr_throttled bigint[], throttled bigint[], cpu_some float8[], cpu_full float8[],
  currents bigint[], working_sets bigint[], mem_limits bigint[], mem_requests bigint[], mem_some float8[],
  mem_full float8[],
  events_high bigint[], events_max bigint[], oom_kills bigint[], refaults bigint[], pgmajfaults bigint[],
  runq_counts bigint[], runq_p50 bigint[], runq_p95 bigint[], runq_p99 bigint[], runq_max bigint[],
  runq_overflows bigint[],
  blames text[], omitted bigint[], omitted_waits bigint[]) returns void
language plpgsql
as $$
declare
  ahead constant interval := interval '300 s';
  moment constant timestamp := clock_timestamp() at time zone 'utc';
  sampled compute_node;
begin
  sampled := json_populate_record(null::compute_node, document);
  sampled.updated_at := moment;
  if sampled.ts > moment + ahead then
    sampled.ts := moment;
  end if;

  insert into compute_latest (
    container_uid, pod_uid, namespace, pod_name, container, node, cgroup_id, ts, interval_ms, cpu_usage_millis,
    cpu_quota_usec,
    cpu_period_usec, cpu_request_millis, cpu_limit_millis, cpu_nr_periods, cpu_nr_throttled, cpu_throttled_usec,
    cpu_psi_some10,
    cpu_psi_full10, mem_current, mem_working_set, mem_limit, mem_request, mem_psi_some10, mem_psi_full10,
    mem_events_high, mem_events_max,
    mem_oom_kill, mem_refault, mem_pgmajfault, runq_count, runq_p50_us, runq_p95_us, runq_p99_us, runq_max_us,
    runq_overflow, blame,
    blame_omitted, blame_omitted_wait_ns, updated_at)
  select u.container_uid, u.pod_uid, u.namespace, u.pod_name, u.container, sampled.node, u.cgroup_id, sampled.ts,
         sampled.interval_ms,
         u.cpu_usage_millis, u.cpu_quota_usec, u.cpu_period_usec, u.cpu_request_millis, u.cpu_limit_millis,
         u.cpu_nr_periods,
         u.cpu_nr_throttled, u.cpu_throttled_usec, u.cpu_psi_some10, u.cpu_psi_full10, u.mem_current, u.mem_working_set,
         u.mem_limit,
         u.mem_request, u.mem_psi_some10, u.mem_psi_full10, u.mem_events_high, u.mem_events_max, u.mem_oom_kill,
         u.mem_refault,
         u.mem_pgmajfault, u.runq_count, u.runq_p50_us, u.runq_p95_us, u.runq_p99_us, u.runq_max_us, u.runq_overflow,
         u.blame,
         u.blame_omitted, u.blame_omitted_wait_ns, moment
  from unnest(container_uids, pod_uids, namespaces, pod_names, containers, cgroup_ids, usages, quotas, periods,
              cpu_requests, cpu_limits,
              nr_periods, nr_throttled, throttled, cpu_some, cpu_full, currents, working_sets, mem_limits, mem_requests,
              mem_some, mem_full,
              events_high, events_max, oom_kills, refaults, pgmajfaults, runq_counts, runq_p50, runq_p95, runq_p99,
              runq_max,
              runq_overflows, blames, omitted, omitted_waits)
    as u(container_uid, pod_uid, namespace, pod_name, container, cgroup_id, cpu_usage_millis, cpu_quota_usec,
         cpu_period_usec,
         cpu_request_millis, cpu_limit_millis, cpu_nr_periods, cpu_nr_throttled, cpu_throttled_usec, cpu_psi_some10,
         cpu_psi_full10,
         mem_current, mem_working_set, mem_limit, mem_request, mem_psi_some10, mem_psi_full10, mem_events_high,
         mem_events_max,
         mem_oom_kill, mem_refault, mem_pgmajfault, runq_count, runq_p50_us, runq_p95_us, runq_p99_us, runq_max_us,
         runq_overflow, blame,
         blame_omitted, blame_omitted_wait_ns)
  order by u.container_uid collate "C"
  on conflict (container_uid) do update set
    pod_uid               = excluded.pod_uid,
    namespace             = excluded.namespace,
    pod_name              = excluded.pod_name,
    container             = excluded.container,
    node                  = excluded.node,
    cgroup_id             = excluded.cgroup_id,
    ts                    = excluded.ts,
    interval_ms           = excluded.interval_ms,
    cpu_usage_millis      = excluded.cpu_usage_millis,
    cpu_quota_usec        = excluded.cpu_quota_usec,
    cpu_period_usec       = excluded.cpu_period_usec,
    cpu_request_millis    = excluded.cpu_request_millis,
    cpu_limit_millis      = excluded.cpu_limit_millis,
    cpu_nr_periods        = excluded.cpu_nr_periods,
    cpu_nr_throttled      = excluded.cpu_nr_throttled,
    cpu_throttled_usec    = excluded.cpu_throttled_usec,
    cpu_psi_some10        = excluded.cpu_psi_some10,
    cpu_psi_full10        = excluded.cpu_psi_full10,
    mem_current           = excluded.mem_current,
    mem_working_set       = excluded.mem_working_set,
    mem_limit             = excluded.mem_limit,
    mem_request           = excluded.mem_request,
    mem_psi_some10        = excluded.mem_psi_some10,
    mem_psi_full10        = excluded.mem_psi_full10,
    mem_events_high       = excluded.mem_events_high,
    mem_events_max        = excluded.mem_events_max,
    mem_oom_kill          = excluded.mem_oom_kill,
    mem_refault           = excluded.mem_refault,
    mem_pgmajfault        = excluded.mem_pgmajfault,
    runq_count            = excluded.runq_count,
    runq_p50_us           = excluded.runq_p50_us,
    runq_p95_us           = excluded.runq_p95_us,
    runq_p99_us           = excluded.runq_p99_us,
    runq_max_us           = excluded.runq_max_us,
    runq_overflow         = excluded.runq_overflow,
    blame                 = excluded.blame,
    blame_omitted         = excluded.blame_omitted,
    blame_omitted_wait_ns = excluded.blame_omitted_wait_ns,
    updated_at            = excluded.updated_at;

  insert into compute_node select sampled.*
  on conflict (node) do update set
    ts                       = excluded.ts,
    interval_ms              = excluded.interval_ms,
    ctxt_per_sec             = excluded.ctxt_per_sec,
    compute_enabled          = excluded.compute_enabled,
    compute_supported        = excluded.compute_supported,
    contention_loaded        = excluded.contention_loaded,
    cpu_some10               = excluded.cpu_some10,
    cpu_full10               = excluded.cpu_full10,
    mem_some10               = excluded.mem_some10,
    mem_full10               = excluded.mem_full10,
    cpu_cores                = excluded.cpu_cores,
    memory_bytes             = excluded.memory_bytes,
    bpf_runq_enqueued        = excluded.bpf_runq_enqueued,
    bpf_runq_hist            = excluded.bpf_runq_hist,
    bpf_pair                 = excluded.bpf_pair,
    unknown_blame_share      = excluded.unknown_blame_share,
    bpf_hist_update_failures = excluded.bpf_hist_update_failures,
    bpf_pair_update_failures = excluded.bpf_pair_update_failures,
    updated_at               = excluded.updated_at;
end
$$;
