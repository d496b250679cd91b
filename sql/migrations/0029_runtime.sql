-- Which files ran in the containers of each workload, and how completely they were watched.
-- A path may be longer than a key of an index: the key has its beginning, by which it is in order, and its SHA-256. What is written again each
-- hour stays in place (HOT), so no index has a time: what is old is found by its day.
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
  origin         text collate "C" not null check (origin in ('unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd')),
  last_pod_name  text collate "C",
  first_seen     timestamp not null,
  last_seen      timestamp not null,
  last_seen_day  date not null generated always as (last_seen::date) stored,
  primary key (pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path_start, path_hash, cluster_id)
) with (fillfactor = 80);

create index runtime_executable_by_image on runtime_executable (image_digest, kind, path_start, path_hash) where image_digest <> '';
create index runtime_executable_incomplete
  on runtime_executable (pod_namespace, workload_kind, workload_name, container_name, image_digest) where not path_complete;
create index runtime_executable_oldest on runtime_executable (last_seen_day);

-- One row for each container that an agent watches or watched. What it is of never changes; `covered_since` is where its latest run without a gap
-- began.
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

-- The containers that run in a pod by its newest post, with an image that is known or not; null where no post said.
alter table pod add column running_containers text[] collate "C";
