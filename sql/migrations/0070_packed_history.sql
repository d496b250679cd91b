-- Minutes and waits of the last hours are rows. Older ones took half a kilobyte and 200 bytes each, so a large cluster
-- outgrew its disk with them first. Now a job packs the minutes of a container and hour into one row, compressed, and
-- deletes waits that no answer can contain (docs/contract.md#compute). Each day (UTC) has a partition here, too.

-- An operator may have set default_tablespace. PostgreSQL refuses a partitioned table if that is the tablespace of the
-- database.
set local default_tablespace = '';

-- The minutes of one length that a container has in the hour `ts`. `data` has their columns, in a form that
-- lib/compute/pack.ts reads. `seconds` are the seconds of the hour at which they are, by which a repeated post is
-- recognised. `revision` changes with each change of the row.
create table compute_minute_pack (
  container_id    bigint not null,
  ts              timestamp not null,
  resolution_secs bigint not null,
  revision        bigint not null,
  seconds         smallint[] not null,
  data            bytea not null,
  primary key (container_id, ts, resolution_secs)
) partition by range (ts);

alter table compute_minute_pack alter column data set storage external;

-- The rows of five minutes into which the minutes of an hour are rolled up. `minute_keys` are those minutes: 3600 times
-- the length and the second of the hour.
create table compute_folded_pack (
  like compute_minute_pack including defaults including storage,
  -- squawk-ignore prefer-bigint-over-int
  minute_keys integer[] not null,
  primary key (container_id, ts, resolution_secs)
) partition by range (ts);

-- Waits of earlier hours that may be among the longest of their victim in some time until now. The job moves them here
-- from compute_contention.
create table compute_contention_kept (
  like compute_contention including defaults,
  primary key (victim_id, ts, id)
) partition by range (ts);

create index compute_contention_kept_heaviest on compute_contention_kept (victim_id, wait_ns desc, id desc);

create table compute_minute_pack_other partition of compute_minute_pack default;
create table compute_folded_pack_other partition of compute_folded_pack default;
create table compute_contention_kept_other partition of compute_contention_kept default;

-- A replica of the release before reads only rows: nothing is packed while it may still run.
alter table compute_fold
  add column pack_after timestamp not null default '-infinity';

update compute_fold set pack_after = (now() + interval '1 hour') at time zone 'utc'
where exists (select from compute_container);

-- The rollup into rows of compute_folded has ended: `folded_until` and `closed_until` stay. Of the minutes before
-- `folded_until` only late ones are still to be read.
drop function if exists compute_close(timestamp);
drop function if exists compute_rollup_step(timestamp, timestamp, bigint);
drop function if exists compute_merge_step(timestamp, timestamp, bigint);
drop function if exists compute_rollup_range(timestamp, timestamp, boolean);
drop function if exists compute_mean(bigint, bigint, bigint, bigint);
drop function if exists compute_mean(double precision, bigint, double precision, bigint);
drop function if exists workload_usage(text, text, text, integer, integer, integer, integer);
