-- Profiles of workloads: the versions of each, the newest one for the list, attempts that failed, and recorded exports.

-- One row for each state that a workload was in, without the times and counts of its profile. `snapshot` has the keys
-- of every object sorted, and the hashes are of that text. A revision fits into an integer: a pass makes at most one.
create table workload_profile_version (
  cluster_id       text collate "C" not null,
  pod_namespace    text collate "C" not null,
  workload_kind    text collate "C" not null,
  workload_name    text collate "C" not null,
  -- squawk-ignore prefer-bigint-over-int
  revision         integer not null check (revision > 0),
  content_hash     text collate "C" not null,
  dimension_hashes json not null,
  posture          json not null,
  snapshot         json not null,
  created_at       timestamp not null,
  primary key (pod_namespace, workload_kind, workload_name, revision, cluster_id)
);

create index workload_profile_version_oldest on workload_profile_version (created_at);

-- The rows of GET /workloads. `summary` has the parts of an item that come from the profile. `has_drift` and `is_full`
-- (the snapshot has as many network rules as it may have) are for metrics; they rarely change, so that most updates
-- touch no index.
create table workload_profile (
  cluster_id      text collate "C" not null,
  pod_namespace   text collate "C" not null,
  workload_kind   text collate "C" not null,
  workload_name   text collate "C" not null,
  -- squawk-ignore prefer-bigint-over-int
  revision        integer not null,
  content_hash    text collate "C" not null,
  posture_status  text collate "C" not null,
  summary         json not null,
  has_drift       boolean not null,
  is_full         boolean not null,
  computed_at     timestamp not null,
  last_changed_at timestamp not null,
  primary key (pod_namespace, workload_kind, workload_name, cluster_id)
) with (fillfactor = 70);

create index workload_profile_drifting
  on workload_profile (pod_namespace, workload_kind, workload_name) where has_drift;

create index workload_profile_full on workload_profile (pod_namespace, workload_kind, workload_name) where is_full;

-- The newest attempt of a workload, where it failed; the next success deletes it.
create table workload_profile_failure (
  cluster_id    text collate "C" not null,
  pod_namespace text collate "C" not null,
  workload_kind text collate "C" not null,
  workload_name text collate "C" not null,
  message       text not null,
  failed_at     timestamp not null,
  primary key (pod_namespace, workload_kind, workload_name, cluster_id)
);

-- The process whose turn it is to compute profiles: it works between its statements, where no lock holds.
create table workload_profile_turn (
  is_only    boolean primary key default true check (is_only),
  holder     uuid not null,
  held_until timestamp not null
);

-- Exports that were recorded: what a later profile is compared with.
create table workload_profile_export (
  id            bigint generated always as identity primary key,
  cluster_id    text collate "C" not null,
  pod_namespace text collate "C" not null,
  workload_kind text collate "C" not null,
  workload_name text collate "C" not null,
  -- squawk-ignore prefer-bigint-over-int
  revision      integer,
  content_hash  text collate "C" not null,
  mode          text collate "C" not null check (mode in ('audit', 'enforce')),
  artifacts     text[] not null,
  images        json not null,
  pod_security  json not null,
  exported_at   timestamp not null
);

create index workload_profile_export_of_workload
  on workload_profile_export (pod_namespace, workload_kind, workload_name, cluster_id, exported_at desc, id desc);

create index workload_profile_export_oldest on workload_profile_export (exported_at);
