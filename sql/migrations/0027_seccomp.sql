-- `workload_syscalls` has the observed sets. A set outlives its pods and only grows, until it is reset. `syscalls` and
-- `arches` are sorted by bytes. `pod_syscalls.united_in` names the set that has all names of the pod, as a JSON array
-- of namespace, kind and name. Only migration 0037 still reads it.
create table workload_syscalls (
  pod_namespace text collate "C",
  workload_kind text collate "C",
  workload_name text collate "C",
  syscalls      text not null,
  arches        text[] not null,
  hash          text not null,
  syscall_count bigint not null,
  updated_at    timestamp not null,
  primary key (pod_namespace, workload_kind, workload_name)
) with (fillfactor = 80);

alter table pod_syscalls add column united_in text collate "C";

-- A row mirrors a custom resource. `syscalls` are the names that its rules allow, sorted by bytes and joined with
-- commas. `updated_at` is the time of the last change. A part of the reference to a workload is null where the resource
-- lacks it.
create table seccomp_cr (
  namespace      text collate "C",
  name           text collate "C",
  default_action text not null,
  architectures  text[] not null,
  syscalls       text not null,
  syscall_count  bigint not null,
  workload_kind  text collate "C",
  workload_name  text collate "C",
  hash           text collate "C" not null,
  ready          bigint not null,
  total          bigint not null,
  state          text not null,
  updated_at     timestamp not null,
  primary key (namespace, name)
) with (fillfactor = 80);

create index seccomp_cr_by_workload on seccomp_cr (namespace, workload_kind, workload_name);

-- Nodes of a cluster mostly have the same profile files. So each set of files is stored once, under the SHA-256 of its
-- content, and deleted with the last node that has it.
create table seccomp_file_set (
  id bytea primary key
);

create table seccomp_file (
  path        text collate "C",
  file_set_id bytea references seccomp_file_set on delete cascade,
  hash        text collate "C",
  primary key (path, file_set_id)
);

create index seccomp_file_by_set on seccomp_file (file_set_id);

create table seccomp_node (
  node_name   text collate "C" primary key,
  file_set_id bytea not null references seccomp_file_set,
  updated_at  timestamp not null
) with (fillfactor = 70);

create index seccomp_node_by_set on seccomp_node (file_set_id);

-- A row adds up all denials of a pod, syscall and action. The workload is unknown where its kind or name is null.
create table seccomp_denial (
  id            bigint generated always as identity primary key,
  pod_uid       text collate "C" not null,
  pod_name      text collate "C" not null,
  pod_namespace text collate "C" not null,
  workload_kind text collate "C",
  workload_name text collate "C",
  node_name     text collate "C",
  syscall       text collate "C" not null,
  syscall_nr    bigint,
  action        text collate "C" not null,
  action_raw    bigint,
  arch          text collate "C",
  count         bigint not null,
  first_seen    timestamp not null,
  last_seen     timestamp not null,
  unique (pod_uid, syscall, action)
) with (fillfactor = 80);

create index seccomp_denial_newest on seccomp_denial (last_seen, id);
create index seccomp_denial_by_workload on seccomp_denial (pod_namespace, workload_kind, workload_name, last_seen, id);
create index seccomp_denial_of_namespace on seccomp_denial (pod_namespace, last_seen, id);
create index seccomp_denial_unattributed on seccomp_denial (pod_namespace, id)
  where workload_kind is null or workload_name is null;

-- A row says when a node last posted, and whether its probe was attached then. `posts` are the ids of its latest posts.
-- If the answer of the database is lost, the broker repeats the statement, and the id keeps it from counting twice.
create table seccomp_denial_node (
  node_name        text collate "C" primary key,
  capturing        boolean not null,
  interval_seconds bigint check (interval_seconds between 1 and 600),
  posts            uuid[] not null,
  updated_at       timestamp not null
) with (fillfactor = 70);
