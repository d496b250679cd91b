-- How the containers of a workload used CPU and memory in the last days (UTC, with today), over all its pods; the basis
-- of GET /compute/workloads/{namespace}/{kind}/{name} (docs/contract.md#sizing-of-workloads). Minutes that are not
-- counted yet are read one by one, and with them, where all of the window are stored and they are at most
-- `max_exact_minutes`, all others. Those that are packed must be given then: without them in `packed`, the result has
-- `packs` and their `revisions`, with which `packed` shows that it has all of them. `max_pods` and `max_containers`
-- leave the newest. The planner settings are those of look-ups, but for joins of rows that are read already.
create or replace function workload_usage(of_namespace text, of_kind text, of_name text, of_days integer,
                                          max_pods integer, max_containers integer, max_exact_minutes integer,
                                          packed json default null)
returns json
language sql stable
set enable_hashjoin = on
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set work_mem = '32MB'
as $$
  with asked as materialized (
    select n.moment, f.counted_until, f.folded_until,
           date_trunc('day', n.moment) - make_interval(days => of_days - 1) as since
    from compute_fold f
    cross join (select now() at time zone 'utc' as moment) n),
  pods as materialized (
    select p.pod_name, nullif(p.pod_uid, '') as pod_uid, p.is_dead
    from (
      select p.pod_name, p.pod_uid, p.is_dead, p.time_stamp
      from pod p
      where p.pod_namespace = of_namespace and p.workload_kind = of_kind and p.workload_name = of_name
      union all
      select p.pod_name, p.pod_uid, p.is_dead, p.time_stamp
      from pod p
      where of_kind = 'Pod' and p.pod_name = of_name and p.pod_namespace = of_namespace
        and not is_owned(p.workload_kind, p.workload_name)) p
    order by p.is_dead, p.time_stamp desc, p.pod_name
    limit max_pods + 1),
  -- Pods of one name may follow each other, as those of a StatefulSet do.
  uids as materialized (
    select p.pod_uid from pods p where p.pod_uid is not null
    union
    select i.pod_uid
    from pods p
    cross join lateral (
      select i.* from pod_instance i
      where i.pod_name = p.pod_name and i.pod_namespace = of_namespace
      offset 0) i
    where i.pod_uid <> ''
      and (i.workload_kind = of_kind and i.workload_name = of_name
           or of_kind = 'Pod' and not is_owned(i.workload_kind, i.workload_name))),
  found as materialized (
    select c.id, c.container, c.pod_uid, c.pod_name
    from (
      select c.id, c.container, c.pod_uid, c.pod_name
      from uids u
      cross join lateral (
        select c.id, c.container, c.pod_uid, c.pod_name, c.namespace from compute_container c
        where c.pod_uid = u.pod_uid
        offset 0) c
      where c.namespace = of_namespace
      union
      select c.id, c.container, c.pod_uid, c.pod_name
      from (select array_agg(p.pod_name) as names from pods p where p.pod_uid is null having count(*) > 0) n
      join compute_container c on c.namespace = of_namespace and c.pod_name = any (n.names)) c
    order by c.id desc
    limit max_containers + 1),
  chosen as materialized (select f.* from found f order by f.id desc limit max_containers),
  mode as materialized (
    select a.since, m.is_exact,
           case when m.is_exact then a.since else greatest(a.since, a.counted_until) end as minutes_from
    from asked a
    cross join lateral (
      select a.since >= date_trunc('day', a.folded_until)
             and not exists (
               select from chosen c
               cross join lateral (
                 select from compute_folded_pack k where k.container_id = c.id and k.ts >= a.since offset 0) k)
             and (select count(*) from chosen) * extract(epoch from a.moment - a.since) / 60 <= max_exact_minutes
        as is_exact) m),
  usage as materialized (
    select c.container, c.pod_uid, c.id, u.*
    from mode m
    cross join chosen c
    cross join lateral (
      select u.* from compute_usage u
      where not m.is_exact and u.container_id = c.id and u.ts >= m.since
      offset 0) u),
  packs as materialized (
    select k.container_id, k.resolution_secs, k.revision, k.data
    from mode m
    cross join chosen c
    cross join lateral (
      select k.* from compute_minute_pack k
      where m.is_exact and k.container_id = c.id and k.ts >= m.since
      offset 0) k),
  revisions as materialized (
    select coalesce(string_agg(p.revision::text, ',' order by p.revision), '') as are from packs p),
  recent as materialized (
    select c.container, c.pod_uid, c.id, r.*
    from mode m
    cross join chosen c
    cross join lateral (
      select k.ts, k.resolution_secs, k.cpu_usage_millis_avg, k.cpu_usage_millis_max, k.mem_working_set_max,
             k.cpu_request_millis, k.cpu_limit_millis, k.mem_request, k.mem_limit, k.cpu_nr_periods, k.cpu_nr_throttled,
             k.mem_oom_kill
      from compute_minute k
      where k.container_id = c.id and k.ts >= m.minutes_from
      union all
      select u.ts, u.resolution_secs, u.cpu_usage_millis_avg, u.cpu_usage_millis_max, u.mem_working_set_max,
             u.cpu_request_millis, u.cpu_limit_millis, u.mem_request, u.mem_limit, u.cpu_nr_periods, u.cpu_nr_throttled,
             u.mem_oom_kill
      from compute_uncounted u
      where not m.is_exact and u.container_id = c.id and u.ts >= m.since and u.ts < m.minutes_from
      offset 0) r
    union all
    select c.container, c.pod_uid, c.id, u.ts, k.resolution_secs, u.cpu_usage_millis_avg, u.cpu_usage_millis_max,
           u.mem_working_set_max, u.cpu_request_millis, u.cpu_limit_millis, u.mem_request, u.mem_limit, u.cpu_nr_periods,
           u.cpu_nr_throttled, u.mem_oom_kill
    from json_to_recordset(packed -> 'packs')
      as k(container_id bigint, resolution_secs bigint, ts timestamp[], cpu_usage_millis_avg float8[],
           cpu_usage_millis_max float8[], mem_working_set_max bigint[], cpu_request_millis bigint[],
           cpu_limit_millis bigint[], mem_request bigint[], mem_limit bigint[], cpu_nr_periods bigint[],
           cpu_nr_throttled bigint[], mem_oom_kill bigint[])
    join chosen c on c.id = k.container_id
    cross join unnest(
      k.ts, k.cpu_usage_millis_avg, k.cpu_usage_millis_max, k.mem_working_set_max, k.cpu_request_millis,
      k.cpu_limit_millis, k.mem_request, k.mem_limit, k.cpu_nr_periods, k.cpu_nr_throttled, k.mem_oom_kill)
      u(ts, cpu_usage_millis_avg, cpu_usage_millis_max, mem_working_set_max, cpu_request_millis, cpu_limit_millis,
        mem_request, mem_limit, cpu_nr_periods, cpu_nr_throttled, mem_oom_kill)),
  seen as materialized (
    select u.container, u.pod_uid, u.id, u.cpu_request_millis, u.cpu_limit_millis, u.mem_request, u.mem_limit,
           u.first_ts, u.last_ts, u.secs, u.cpu_max, u.mem_max, u.cpu_nr_periods, u.cpu_nr_throttled, u.mem_oom_kill
    from usage u
    union all
    select r.container, r.pod_uid, r.id, r.cpu_request_millis, r.cpu_limit_millis, r.mem_request, r.mem_limit,
           min(r.ts), max(r.ts), sum(r.resolution_secs), max(r.cpu_usage_millis_max), max(r.mem_working_set_max),
           compute_total(sum(r.cpu_nr_periods)), compute_total(sum(r.cpu_nr_throttled)),
           compute_total(sum(r.mem_oom_kill))
    from recent r
    group by 1, 2, 3, 4, 5, 6, 7),
  settings as materialized (
    select s.container, s.cpu_request_millis, s.cpu_limit_millis, s.mem_request, s.mem_limit, min(s.first_ts) as first_ts,
           max(s.last_ts) as last_ts, max(s.id) as newest_id, sum(s.secs) as secs, count(distinct s.pod_uid) as pods,
           max(s.cpu_max) as cpu_max, max(s.mem_max) as mem_max, sum(s.cpu_nr_periods) as periods,
           sum(s.cpu_nr_throttled) as throttled, sum(s.mem_oom_kill) as oom_kills
    from seen s
    group by 1, 2, 3, 4, 5),
  -- From its first to its last minute a container ran: what is missing in between is a gap.
  spans as materialized (
    select s.container, count(distinct s.pod_uid) as pods, sum(greatest(s.secs, s.span)) as span_secs
    from (
      select s.container, s.pod_uid, s.id, sum(s.secs) as secs,
             extract(epoch from max(s.last_ts) - min(s.first_ts)) + 60 as span
      from seen s
      group by 1, 2, 3) s
    group by 1),
  shares as materialized (
    select v.container, v.resource, v.value, v.secs,
           sum(v.secs) over (partition by v.container, v.resource order by v.value) as upto,
           sum(v.secs) over (partition by v.container, v.resource) as total
    from (
      select b.container, b.resource, compute_bucket_bound(b.bucket) as value, b.secs
      from (
        select u.container, 'cpu' as resource, c.bar >> 32 as bucket, sum(c.bar & 4294967295)::bigint as secs
        from usage u
        cross join unnest(u.cpu_hist) c(bar)
        group by 1, 3
        union all
        select u.container, 'memory', m.bar >> 32, sum(m.bar & 4294967295)::bigint
        from usage u
        cross join unnest(u.mem_hist) m(bar)
        group by 1, 3) b
      union all
      select r.container, 'cpu', r.cpu_usage_millis_avg, sum(r.resolution_secs)::bigint from recent r group by 1, 3
      union all
      select r.container, 'memory', r.mem_working_set_max, sum(r.resolution_secs)::bigint from recent r group by 1, 3) v),
  quantiles as materialized (
    select s.container, s.resource, min(s.value) filter (where s.upto >= 0.5 * s.total) as p50,
           min(s.value) filter (where s.upto >= 0.95 * s.total) as p95,
           min(s.value) filter (where s.upto >= 0.99 * s.total) as p99
    from shares s
    group by 1, 2),
  -- Pods without a uid are known by their name, which a space keeps apart from uids.
  observed as materialized (
    select distinct k.key
    from seen s
    join chosen c on c.id = s.id
    cross join lateral (values (c.pod_uid), (' ' || c.pod_name)) k(key))
  select case when (select r.are from revisions r) <> coalesce(packed ->> 'revisions', '') then json_build_object(
    'revisions', (select r.are from revisions r),
    'packs', (
      select json_agg(json_build_object('containerId', p.container_id::text, 'resolutionSecs', p.resolution_secs::text,
                                        'data', encode(p.data, 'base64')))
      from packs p))
  else json_build_object(
    'since', (select wire_time(a.since) || 'Z' from asked a),
    'until', (select wire_time(date_trunc('second', a.moment)) || 'Z' from asked a),
    'isEstimate', exists (select from usage),
    'truncated', (select count(*) from pods) > max_pods or (select count(*) from found) > max_containers,
    'pods', (select count(*) from pods),
    'livePods', (select count(*) from pods p where not p.is_dead),
    'livePodsUnobserved', (
      select count(*) from pods p
      where not p.is_dead and coalesce(p.pod_uid, ' ' || p.pod_name) not in (select o.key from observed o)),
    'observedPods', (select count(distinct s.pod_uid) from seen s),
    'containers', (
      select coalesce(json_agg(json_build_object(
        'container', n.container, 'pods', n.pods, 'spanSecs', n.span_secs,
        'cpu', (select json_build_array(q.p50, q.p95, q.p99) from quantiles q
                where q.container = n.container and q.resource = 'cpu'),
        'memory', (select json_build_array(q.p50, q.p95, q.p99) from quantiles q
                   where q.container = n.container and q.resource = 'memory'),
        'settings', (
          select json_agg(json_build_object(
            'cpuRequestMillis', t.cpu_request_millis, 'cpuLimitMillis', t.cpu_limit_millis,
            'memRequestBytes', t.mem_request, 'memLimitBytes', t.mem_limit,
            'firstSeen', wire_time(date_trunc('second', t.first_ts)) || 'Z',
            'lastSeen', wire_time(date_trunc('second', t.last_ts)) || 'Z', 'secs', t.secs,
            'pods', t.pods, 'cpuMaxMillis', t.cpu_max, 'memMaxBytes', t.mem_max, 'periods', t.periods,
            'throttled', t.throttled, 'oomKills', t.oom_kills)
            order by t.last_ts desc, t.newest_id desc, t.first_ts desc)
          from settings t
          where t.container = n.container)) order by n.container), '[]')
      from spans n)) end
$$;
