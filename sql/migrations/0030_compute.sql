-- These tables have the CPU and memory of containers and their waits: the latest samples, the history and the culprits.
-- A sample replaces the one before, several times a minute. No index has a column that changes with it, so that
-- PostgreSQL leaves the indexes alone (HOT updates).
create table compute_latest (
  container_uid         text collate "C" primary key,
  pod_uid               text collate "C" not null,
  namespace             text collate "C" not null,
  pod_name              text collate "C" not null,
  container             text collate "C" not null,
  node                  text collate "C" not null,
  cgroup_id             bigint,
  ts                    timestamp not null,
  interval_ms           bigint not null,
  cpu_usage_millis      float8 not null,
  cpu_quota_usec        bigint,
  cpu_period_usec       bigint not null,
  cpu_request_millis    bigint,
  cpu_limit_millis      bigint,
  cpu_nr_periods        bigint not null,
  cpu_nr_throttled      bigint not null,
  cpu_throttled_usec    bigint not null,
  cpu_psi_some10        float8 not null,
  cpu_psi_full10        float8 not null,
  mem_current           bigint not null,
  mem_working_set       bigint not null,
  mem_limit             bigint,
  mem_request           bigint,
  mem_psi_some10        float8 not null,
  mem_psi_full10        float8 not null,
  mem_events_high       bigint not null,
  mem_events_max        bigint not null,
  mem_oom_kill          bigint not null,
  mem_refault           bigint not null,
  mem_pgmajfault        bigint not null,
  runq_count            bigint,
  runq_p50_us           bigint,
  runq_p95_us           bigint,
  runq_p99_us           bigint,
  runq_max_us           bigint,
  runq_overflow         bigint,
  blame                 text not null,
  blame_omitted         bigint not null,
  blame_omitted_wait_ns bigint not null,
  updated_at            timestamp not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

create index compute_latest_by_namespace on compute_latest (namespace, pod_name, container, container_uid);

create table compute_node (
  node                     text collate "C" primary key,
  ts                       timestamp not null,
  interval_ms              bigint not null,
  ctxt_per_sec             float8 not null,
  compute_enabled          boolean not null,
  compute_supported        boolean not null,
  contention_loaded        boolean not null,
  cpu_some10               float8 not null,
  cpu_full10               float8 not null,
  mem_some10               float8 not null,
  mem_full10               float8 not null,
  cpu_cores                float8 not null,
  memory_bytes             bigint not null,
  bpf_runq_enqueued        bigint not null,
  bpf_runq_hist            bigint not null,
  bpf_pair                 bigint not null,
  unknown_blame_share      float8 not null,
  bpf_hist_update_failures bigint,
  bpf_pair_update_failures bigint,
  updated_at               timestamp not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- A broker of the previous release reads heartbeats under this name.
-- squawk-ignore ban-drop-table
drop table node_heartbeat;
create view node_heartbeat as select node as node_name, updated_at from compute_node;

-- Rows of the history refer to a container by its number, so that they need not repeat its names. A later post with the
-- same `container_uid` replaces the other names.
create table compute_container (
  id            bigint generated always as identity primary key,
  container_uid text collate "C" not null unique,
  pod_uid       text collate "C" not null,
  namespace     text collate "C" not null,
  pod_name      text collate "C" not null,
  container     text collate "C" not null,
  node          text collate "C" not null
) with (fillfactor = 80);

create index compute_container_by_pod on compute_container (pod_uid, id);
create index compute_container_by_namespace on compute_container (namespace, container_uid);
create index compute_container_by_node on compute_container (node, container_uid);

create sequence compute_history_id;

-- An operator may have set default_tablespace. PostgreSQL refuses a partitioned table if that is the tablespace of the
-- database.
set local default_tablespace = '';

-- Rows of five minutes or more are rollups of minutes, or were posted with such a length. Each day (UTC) has a
-- partition. The default partition takes rows whose day has none.
create table compute_folded (
  id                     bigint not null default nextval('compute_history_id'),
  container_id           bigint not null,
  ts                     timestamp not null,
  resolution_secs        bigint not null check (resolution_secs > 0),
  cpu_usage_millis_avg   float8 not null,
  cpu_usage_millis_max   float8 not null,
  cpu_usage_millis_last  float8 not null,
  cpu_quota_usec         bigint,
  cpu_period_usec        bigint not null,
  cpu_request_millis     bigint,
  cpu_limit_millis       bigint,
  cpu_nr_periods         bigint not null,
  cpu_nr_throttled       bigint not null,
  cpu_throttled_usec     bigint not null,
  cpu_psi_some10_avg     float8 not null,
  cpu_psi_some10_max     float8 not null,
  cpu_psi_full10_avg     float8 not null,
  cpu_psi_full10_max     float8 not null,
  mem_current_avg        bigint not null,
  mem_current_max        bigint not null,
  mem_current_last       bigint not null,
  mem_working_set_avg    bigint not null,
  mem_working_set_max    bigint not null,
  mem_working_set_last   bigint not null,
  mem_limit              bigint,
  mem_request            bigint,
  mem_psi_some10_avg     float8 not null,
  mem_psi_some10_max     float8 not null,
  mem_psi_full10_avg     float8 not null,
  mem_psi_full10_max     float8 not null,
  mem_events_high        bigint not null,
  mem_events_max         bigint not null,
  mem_oom_kill           bigint not null,
  mem_refault            bigint not null,
  mem_pgmajfault         bigint not null,
  runq_count             bigint,
  runq_p50_us            bigint,
  runq_p95_us            bigint,
  runq_p99_us            bigint,
  runq_max_us            bigint,
  runq_overflow          bigint,
  runq_hist              bigint[],
  -- If the time as sent was too far ahead, `ts` is the time of arrival. This is then the time as sent, by which a
  -- repeated post is recognised. It is null in all other rows.
  sent_at                timestamp,
  primary key (container_id, ts, resolution_secs)
) partition by range (ts);

-- Minutes are partitioned in the same way. No update changes their values. A minute before `compute_fold.folded_until`
-- that is not late is part of a row of compute_folded, and reads skip it. It stays until its day is dropped, so that a
-- repeated post of it is recognised.
create table compute_minute (
  like compute_folded including defaults including constraints,
  is_late boolean not null default false,
  primary key (container_id, ts, resolution_secs)
) partition by range (ts);

-- `parts` is the number of minutes in a row, `newest_ts` the time of the newest. The merge of a late minute uses them
-- as the weight of the stored means and to choose the last values. A posted row counts as one minute, the newest.
alter table compute_folded
  add column parts     bigint    not null default 1,
  add column newest_ts timestamp not null default 'infinity';

create index compute_minute_sent on compute_minute (sent_at, container_id) where sent_at is not null;
create index compute_folded_sent on compute_folded (sent_at, container_id) where sent_at is not null;
create index compute_minute_late on compute_minute (ts) where is_late;
create index compute_minute_by_time on compute_minute using brin (ts) with (pages_per_range = 32, autosummarize = on);
-- Reads find the containers that have minutes in the last few minutes. The index is partial, so that the planner cannot
-- use it for the look-ups of one container: in a partition with few rows it would cost the same as the primary key.
create index compute_minute_recent on compute_minute (ts) where resolution_secs = 60;

-- A row says how long one culprit made a victim wait in one minute. Each day (UTC) has a partition, and rows are never
-- updated. Reads take the waits of a victim by time, or the heaviest first. For the latter, the heaviest wait of each
-- minute leads to the minute, so that the index has one entry for the ten or twenty pairs of a minute. If more of them
-- have the flag `is_heaviest`, the result is the same.
create table compute_contention (
  id                    bigint not null default nextval('compute_history_id'),
  victim_id             bigint not null,
  ts                    timestamp not null,
  culprit_cgroup_id     bigint,
  culprit_kind          text collate "C" not null,
  culprit_ref           text collate "C" not null,
  culprit_container_uid text collate "C",
  count                 bigint not null,
  wait_ns               bigint not null,
  is_heaviest           boolean not null default true
) partition by range (ts);

create index compute_contention_by_time on compute_contention (victim_id, ts);
create index compute_contention_heaviest on compute_contention (victim_id, wait_ns desc, id desc) where is_heaviest;

create table compute_minute_other partition of compute_minute default;
create table compute_folded_other partition of compute_folded default;
create table compute_contention_other partition of compute_contention default;

-- All minutes before `folded_until` are rolled up, except late ones. A minute is late if its time is before
-- `closed_until` when it arrives. `closed_until` moves ahead of a rollup, so that no minutes are added to those that
-- the rollup reads.
create table compute_fold (
  is_only      boolean primary key default true check (is_only),
  folded_until timestamp not null,
  closed_until timestamp not null,
  check (folded_until <= closed_until)
) with (fillfactor = 50);

insert into compute_fold (folded_until, closed_until) values ('-infinity', '-infinity');
