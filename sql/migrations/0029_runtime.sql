-- `runtime_executable` has the files that ran in containers, `runtime_coverage` says how completely agents watched
-- them. A path may be too long for an index. So the key has its first 256 characters, for the order, and its SHA-256.
-- Posts rewrite rows every hour. No index has a time, so that PostgreSQL leaves the indexes alone (HOT updates), and
-- old rows are found by their day.
create table runtime_executable (
  cluster_id     text collate "C" not null,
  pod_namespace  text collate "C" not null,
  workload_kind  text collate "C" not null,
  workload_name  text collate "C" not null,
  container_name text collate "C" not null,
  image_digest   text collate "C" not null,
  kind           text collate "C" not null check (kind in ('exec', 'lib')),
  path           text collate "C" not null,
  path_start     text collate "C" not null generated always as (left(path, 256)) stored,
  path_hash      bytea not null,
  path_complete  boolean not null,
  source         text collate "C" not null check (source in ('ebpf', 'backfill')),
  origin         text collate "C" not null
    check (origin in ('unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd')),
  last_pod_name  text collate "C",
  first_seen     timestamp not null,
  last_seen      timestamp not null,
  last_seen_day  date not null generated always as (last_seen::date) stored,
  primary key (pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path_start, path_hash,
               cluster_id)
) with (fillfactor = 80);

create index runtime_executable_by_image on runtime_executable (image_digest, kind, path_start, path_hash)
  where image_digest <> '';
create index runtime_executable_incomplete
  on runtime_executable (pod_namespace, workload_kind, workload_name, container_name, image_digest)
  where not path_complete;
create index runtime_executable_oldest on runtime_executable (last_seen_day);

-- Each container that an agent watches or watched has one row. Its workload and image change only while they are
-- unknown. `covered_since` is when its latest period without a gap began.
create table runtime_coverage (
  cluster_id        text collate "C" not null,
  container_id      text collate "C" not null,
  pod_namespace     text collate "C" not null,
  workload_kind     text collate "C" not null,
  workload_name     text collate "C" not null,
  container_name    text collate "C" not null,
  image_digest      text collate "C" not null,
  pod_name          text collate "C" not null,
  node_name         text collate "C" not null,
  mode              text collate "C" not null check (mode in ('exec', 'full')),
  exec_probe        boolean not null,
  lib_probe         boolean not null,
  start_mode        text collate "C" not null check (start_mode in ('start', 'backfill')),
  tracking_since    timestamp not null,
  covered_since     timestamp not null,
  probe_attached_at timestamp,
  last_heartbeat    timestamp not null,
  heartbeat_secs    bigint not null check (heartbeat_secs between 1 and 86400),
  gaps              bigint not null,
  last_gap          text collate "C" check (last_gap in ('late_heartbeat', 'probe_restart', 'probe_change')),
  events_dropped    bigint not null,
  last_drop_at      timestamp,
  unsent            bigint not null,
  incomplete        boolean not null,
  ended             boolean not null,
  primary key (container_id, cluster_id)
) with (fillfactor = 70);

create index runtime_coverage_by_workload
  on runtime_coverage (pod_namespace, workload_kind, workload_name, container_name, image_digest);
create index runtime_coverage_by_image on runtime_coverage (image_digest) where image_digest <> '';
create index runtime_coverage_by_pod on runtime_coverage (pod_namespace, pod_name, container_name);

-- These containers run in the pod by its newest post that lists them, with or without a known image. The column is null
-- where no post had such a list.
alter table pod add column running_containers text[] collate "C";
