-- Stores a minute of the containers of a node, each once in the arrays, and what made them wait, by the positions of
-- their victims (docs/contract.md#compute). A `resolution` below 300 seconds is stored as minutes, others beside the
-- rolled-up rows. Known minutes are recognised by reading alone; they and their waits are not added again. A time more
-- than five minutes ahead counts as now and is recognised by the time as sent. New or changed containers and minutes
-- are written in the order of their keys, so that concurrent posts queue without deadlock. The fences (`offset 0`)
-- force a lookup per row whatever the planner estimates of an empty table.
create or replace function store_minutes(
  of_node text, sent timestamp, resolution bigint,
  uids text[], pod_uids text[], namespaces text[], pod_names text[], containers text[],
  usage_avg float8[], usage_max float8[], usage_last float8[], quotas bigint[], periods bigint[], cpu_requests bigint[],
  cpu_limits bigint[],
  nr_periods bigint[], nr_throttled bigint[], throttled bigint[],
  cpu_some_avg float8[], cpu_some_max float8[], cpu_full_avg float8[], cpu_full_max float8[],
  current_avg bigint[], current_max bigint[], current_last bigint[], working_set_avg bigint[], working_set_max bigint[],
  working_set_last bigint[],
  mem_limits bigint[], mem_requests bigint[], mem_some_avg float8[], mem_some_max float8[], mem_full_avg float8[],
  mem_full_max float8[],
  events_high bigint[], events_max bigint[], oom_kills bigint[], refaults bigint[], pgmajfaults bigint[],
  runq_counts bigint[], runq_p50 bigint[], runq_p95 bigint[], runq_p99 bigint[], runq_max bigint[],
  runq_overflows bigint[], hists text[],
  victims integer[], cgroup_ids bigint[], kinds text[], refs text[], culprit_uids text[], counts bigint[],
  waits bigint[], are_heaviest boolean[]) returns void
language plpgsql
as $$
#variable_conflict error
declare
  ahead constant interval := interval '300 s';
  is_folded constant boolean := resolution >= 300;
  line constant timestamp := compute_closed_until();
  counted_line constant timestamp := (select f.count_closed_until from compute_fold f);
  -- Only minutes that are counted are packed.
  may_be_packed constant boolean := sent < counted_line;
  hour constant timestamp := date_trunc('hour', sent);
  second constant smallint := extract(epoch from date_trunc('second', sent) - hour);
  moment timestamp;
  stored_ts timestamp;
  is_known_ahead boolean;
  is_new boolean[];
  ids bigint[];
  stored_ids bigint[];
begin
  moment := clock_timestamp() at time zone 'utc';
  -- Of two concurrent posts of the same future minute, each would store a different now: one waits for the other.
  if sent > moment + ahead - interval '60 s' then
    perform pg_advisory_xact_lock(x'61686561'::integer, hashtext(of_node || '/' || sent || '/' || resolution));
    moment := clock_timestamp() at time zone 'utc';
  end if;
  stored_ts := case when sent > moment + ahead then moment else sent end;
  is_known_ahead := case
    when is_folded then exists (select from compute_folded f where f.sent_at = sent)
    else exists (select from compute_minute m where m.sent_at = sent)
  end;

  is_new := array(
    select c.id is null or not (
      case
        when is_folded then
          exists (select from compute_folded f where f.container_id = c.id and f.ts = sent
                  and f.resolution_secs = resolution offset 0)
        else exists (select from compute_minute m where m.container_id = c.id and m.ts = sent
                     and m.resolution_secs = resolution offset 0)
      end
      or is_known_ahead and case
        when is_folded then
          exists (select from compute_folded f where f.sent_at = sent and f.container_id = c.id
                  and f.resolution_secs = resolution offset 0)
        else exists (select from compute_minute m where m.sent_at = sent and m.container_id = c.id
                     and m.resolution_secs = resolution offset 0)
      end
      or may_be_packed and (
        exists (
          select from compute_minute_pack k
          where k.container_id = c.id and k.ts = hour and k.resolution_secs = resolution and second = any (k.seconds)
          offset 0)
        or exists (
          select from compute_folded_pack k
          where k.container_id = c.id and k.ts = hour
            and case when is_folded then k.resolution_secs = resolution and second = any (k.seconds)
                     else resolution * 3600 + second = any (k.minute_keys) end
          offset 0)))
    from unnest(uids) with ordinality u(uid, n)
    left join lateral (select c.id from compute_container c where c.container_uid = u.uid offset 0) c on true
    order by u.n);
  if not true = any (is_new) then
    return;
  end if;

  insert into compute_container as e (container_uid, pod_uid, namespace, pod_name, container, node)
  select u.uid, u.pod_uid, u.namespace, u.pod_name, u.container, of_node
  from unnest(uids, pod_uids, namespaces, pod_names, containers) with ordinality u(uid, pod_uid, namespace, pod_name,
      container, n)
  where is_new[u.n]
    and not exists (
      select from compute_container c
      where c.container_uid = u.uid and c.pod_uid = u.pod_uid and c.namespace = u.namespace and c.pod_name = u.pod_name
        and c.container = u.container and c.node = of_node
      offset 0)
  order by u.uid collate "C"
  on conflict (container_uid) do update set
    pod_uid   = excluded.pod_uid,
    namespace = excluded.namespace,
    pod_name  = excluded.pod_name,
    container = excluded.container,
    node      = excluded.node
  where (e.pod_uid, e.namespace, e.pod_name, e.container, e.node)
    is distinct from (excluded.pod_uid, excluded.namespace, excluded.pod_name, excluded.container, excluded.node);

  -- Indexed by position; 0 for a container whose minute is known.
  ids := array(
    select case when is_new[u.n] then (select c.id from compute_container c where c.container_uid = u.uid) else 0 end
    from unnest(uids) with ordinality u(uid, n)
    order by u.n);

  -- Both tables begin with these columns.
  with sent_row as materialized (
    select nextval('compute_history_id') as id, r.*
    from (
      select ids[u.n] as container_id, stored_ts as ts, resolution as secs,
             u.usage_avg, u.usage_max, u.usage_last, u.quota, u.period, u.cpu_request, u.cpu_limit, u.nr_periods,
             u.nr_throttled, u.throttled,
             u.cpu_some_avg, u.cpu_some_max, u.cpu_full_avg, u.cpu_full_max, u.current_avg, u.current_max,
             u.current_last,
             u.working_set_avg, u.working_set_max, u.working_set_last, u.mem_limit, u.mem_request,
             u.mem_some_avg, u.mem_some_max, u.mem_full_avg, u.mem_full_max, u.events_high, u.events_max, u.oom_kill,
             u.refault, u.pgmajfault,
             u.runq_count, u.runq_p50, u.runq_p95, u.runq_p99, u.runq_max, u.runq_overflow, u.hist::bigint[],
             case when stored_ts <> sent then sent end as sent_at
      from unnest(usage_avg, usage_max, usage_last, quotas, periods, cpu_requests, cpu_limits, nr_periods, nr_throttled,
                  throttled,
                  cpu_some_avg, cpu_some_max, cpu_full_avg, cpu_full_max, current_avg, current_max, current_last,
                  working_set_avg, working_set_max, working_set_last, mem_limits, mem_requests,
                  mem_some_avg, mem_some_max, mem_full_avg, mem_full_max, events_high, events_max, oom_kills, refaults,
                  pgmajfaults,
                  runq_counts, runq_p50, runq_p95, runq_p99, runq_max, runq_overflows, hists)
        with ordinality as u(
             usage_avg, usage_max, usage_last, quota, period, cpu_request, cpu_limit, nr_periods, nr_throttled,
             throttled,
             cpu_some_avg, cpu_some_max, cpu_full_avg, cpu_full_max, current_avg, current_max, current_last,
             working_set_avg, working_set_max, working_set_last, mem_limit, mem_request,
             mem_some_avg, mem_some_max, mem_full_avg, mem_full_max, events_high, events_max, oom_kill, refault,
             pgmajfault,
             runq_count, runq_p50, runq_p95, runq_p99, runq_max, runq_overflow, hist, n)
      where is_new[u.n]
      order by ids[u.n]) r),
  minute as (
    insert into compute_minute select r.*, stored_ts < line from sent_row r where not is_folded order by r.container_id
    on conflict (container_id, ts, resolution_secs) do nothing
    returning container_id),
  folded as (
    insert into compute_folded select r.* from sent_row r where is_folded order by r.container_id
    on conflict (container_id, ts, resolution_secs) do nothing
    returning container_id)
  select coalesce(array_agg(s.container_id), '{}') into stored_ids
  from (select m.container_id from minute m union all select f.container_id from folded f) s;

  if stored_ts < counted_line and not is_folded then
    insert into compute_uncounted (container_id, ts, resolution_secs, cpu_usage_millis_avg, cpu_usage_millis_max,
                                   mem_working_set_max, cpu_request_millis, cpu_limit_millis, mem_request, mem_limit,
                                   cpu_nr_periods, cpu_nr_throttled, mem_oom_kill)
    select m.container_id, m.ts, m.resolution_secs, m.cpu_usage_millis_avg, m.cpu_usage_millis_max,
           m.mem_working_set_max, m.cpu_request_millis, m.cpu_limit_millis, m.mem_request, m.mem_limit,
           m.cpu_nr_periods, m.cpu_nr_throttled, m.mem_oom_kill
    from unnest(stored_ids) s(id)
    cross join lateral (
      select m.* from compute_minute m
      where m.container_id = s.id and m.ts = stored_ts and m.resolution_secs = resolution
      offset 0) m
    order by m.container_id
    on conflict (container_id, ts, resolution_secs) do nothing;
  end if;

  if cardinality(stored_ids) < cardinality(array_positions(is_new, true)) then
    -- The same minute was posted meanwhile, at least in part.
    ids := array(select case when i.id = any (stored_ids) then i.id else 0 end from unnest(ids) with ordinality i(id, n)
                 order by i.n);
  end if;
  insert into compute_contention (victim_id, ts, culprit_cgroup_id, culprit_kind, culprit_ref, culprit_container_uid,
                                  count, wait_ns, is_heaviest)
  select ids[p.victim], stored_ts, p.cgroup_id, p.kind, p.ref, p.container_uid, p.count, p.wait_ns, p.is_heaviest
  from unnest(victims, cgroup_ids, kinds, refs, culprit_uids, counts, waits, are_heaviest)
    as p(victim, cgroup_id, kind, ref, container_uid, count, wait_ns, is_heaviest)
  where ids[p.victim] > 0;
end
$$;
