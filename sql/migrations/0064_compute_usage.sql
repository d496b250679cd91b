-- Reads about the size of a workload ask how its CPU and memory were distributed over days. Rows of five minutes have
-- no distribution, and a week of minutes is too much to read. So minutes are also counted by value, for each day.

-- An operator may have set default_tablespace. PostgreSQL refuses a partitioned table if that is the tablespace of the
-- database.
set local default_tablespace = '';

-- The minutes of a container in a day (UTC, `ts` is its start) in which it had these requests and limits. An element of
-- a histogram has the number of a bucket (see `compute_bucket`) in its upper and seconds in its lower 32 bits, in
-- order. Each day has a partition, like the other tables of the history.
create table compute_usage (
  container_id       bigint not null,
  ts                 timestamp not null,
  cpu_request_millis bigint,
  cpu_limit_millis   bigint,
  mem_request        bigint,
  mem_limit          bigint,
  first_ts           timestamp not null,
  last_ts            timestamp not null,
  secs               bigint not null,
  cpu_max            float8 not null,
  mem_max            bigint not null,
  cpu_nr_periods     bigint not null,
  cpu_nr_throttled   bigint not null,
  mem_oom_kill       bigint not null,
  cpu_hist           bigint[] not null,
  mem_hist           bigint[] not null
) partition by range (ts);

create unique index compute_usage_key
  on compute_usage (container_id, ts, cpu_request_millis, cpu_limit_millis, mem_request, mem_limit) nulls not distinct;

create table compute_usage_other partition of compute_usage default;

-- Minutes that arrived when their hour was closed for counting. The job counts them, and deletes them here.
create table compute_uncounted (
  container_id          bigint not null,
  ts                    timestamp not null,
  resolution_secs       bigint not null,
  cpu_usage_millis_avg  float8 not null,
  cpu_usage_millis_max  float8 not null,
  mem_working_set_max   bigint not null,
  cpu_request_millis    bigint,
  cpu_limit_millis      bigint,
  mem_request           bigint,
  mem_limit             bigint,
  cpu_nr_periods        bigint not null,
  cpu_nr_throttled      bigint not null,
  mem_oom_kill          bigint not null,
  primary key (container_id, ts, resolution_secs)
);

-- All minutes before `counted_until` are counted, except those in compute_uncounted. A minute before
-- `count_closed_until` is put there when it arrives. Both are ahead of the line of the rollup. Minutes that were rolled
-- up before this table existed are not counted.
alter table compute_fold
  add column counted_until timestamp not null default '-infinity',
  add column count_closed_until timestamp not null default '-infinity';

update compute_fold set counted_until = closed_until, count_closed_until = closed_until;
