-- Several pods may have one name, one after the other or in two namespaces at once, and `pod` has only the last of
-- them. An instance is one of these pods. Syscalls belong to the instance that sent them, with the workload and the
-- capture level that it had then (docs/contract.md#syscalls).
create table pod_instance (
  pod_name      text collate "C",
  pod_namespace text collate "C",
  -- This is the uid, else the start, else empty. A changed workload is appended. `?` means that only the syscalls of
  -- the pod are left.
  instance      text collate "C",
  pod_uid       text collate "C",
  started_at    timestamp,
  workload_kind text collate "C",
  workload_name text collate "C",
  capture_level text,
  -- This is the level before `level_since`.
  earlier_level text,
  level_since   timestamp not null,
  -- The pod had another workload before.
  is_moved      boolean not null default false,
  image_digests text[] not null default '{}',
  -- The agent's clock gives the times of posts, the database's the times seen. The last ones change every few minutes.
  first_post    timestamp not null,
  last_post     timestamp not null,
  first_seen    timestamp not null,
  last_seen     timestamp not null,
  primary key (pod_name, pod_namespace, instance)
) with (fillfactor = 70);

-- This is the time of the post that last wrote the instance of this row. `-infinity` makes the next post write it.
alter table pod add column instance_post timestamp;

-- A row has the syscalls that an instance added to the observed set of its workload.
create table syscall_contribution (
  pod_name      text collate "C",
  pod_namespace text collate "C",
  instance      text collate "C",
  workload_kind text collate "C",
  workload_name text collate "C",
  syscalls      text not null,
  arches        text[] not null,
  -- This is the level at `level_at`, when the pod last sent names.
  capture_level text,
  level_at      timestamp not null,
  -- The pod may have sent names that are not in the set.
  is_doubtful   boolean not null default false,
  -- Names that the pod sent up to this time are not in the set, because the set was reset. `-infinity` means
  -- that the pod sent names for another workload before.
  cut_at        timestamp,
  -- This is the newest time at which the pod is known to have sent its names, by the clock of the agent.
  seen_until    timestamp not null,
  primary key (pod_name, pod_namespace, instance, workload_kind, workload_name)
) with (fillfactor = 70);

create index syscall_contribution_by_workload on syscall_contribution (pod_namespace, workload_kind, workload_name);

-- These syscalls belong to no set: no pod of the name was posted lately, the pod has no workload yet, or pods of two
-- namespaces have the name (`is_ambiguous`).
create table unattributed_syscalls (
  pod_name      text collate "C",
  -- This is the namespace of the pod if only its workload is unknown, else the one that was sent, empty if none was.
  pod_namespace text collate "C",
  is_ambiguous  boolean,
  syscalls      text not null,
  arches        text[] not null,
  -- The newest entry was sent at `sent_at`, by the clock of the agent. The first one arrived at `received_at`.
  sent_at       timestamp not null,
  received_at   timestamp not null,
  primary key (pod_name, pod_namespace, is_ambiguous)
) with (fillfactor = 70);

insert into pod_instance (pod_name, pod_namespace, instance, pod_uid, started_at, workload_kind, workload_name,
                          capture_level, earlier_level, level_since, first_post, last_post, first_seen, last_seen)
select p.pod_name, p.pod_namespace, coalesce(nullif(p.pod_uid, ''), p.started_at::text, ''), nullif(p.pod_uid, ''),
       p.started_at, p.workload_kind, p.workload_name, p.capture_level, p.capture_level,
       p.time_stamp, p.time_stamp, p.time_stamp, p.time_stamp, p.time_stamp
from pod p
where btrim(p.pod_namespace) <> '';

-- The row of a pod with syscalls may be gone, or may be that of a later pod. Its capture level is then unknown.
insert into pod_instance (pod_name, pod_namespace, instance, workload_kind, workload_name, level_since, first_post,
                          last_post, first_seen, last_seen)
select s.pod_name, s.united_in::json ->> 0, '?', s.united_in::json ->> 1, s.united_in::json ->> 2,
       s.time_stamp, s.time_stamp, s.time_stamp, s.time_stamp, s.time_stamp
from pod_syscalls s
left join pod p on p.pod_name = s.pod_name and p.pod_namespace = s.united_in::json ->> 0
               and p.workload_kind = s.united_in::json ->> 1 and p.workload_name = s.united_in::json ->> 2
               and (p.started_at is null or p.started_at <= s.time_stamp)
where s.united_in is not null and p.pod_name is null;

insert into syscall_contribution (pod_name, pod_namespace, instance, workload_kind, workload_name, syscalls, arches,
                                  capture_level, level_at, seen_until)
select s.pod_name, s.united_in::json ->> 0, coalesce(i.instance, '?'), s.united_in::json ->> 1, s.united_in::json ->> 2,
       s.syscalls, case when s.syscalls = '' then '{}' else array[s.arch] end, i.capture_level, s.time_stamp,
       s.time_stamp
from pod_syscalls s
left join pod p on p.pod_name = s.pod_name and p.pod_namespace = s.united_in::json ->> 0
               and p.workload_kind = s.united_in::json ->> 1 and p.workload_name = s.united_in::json ->> 2
               and (p.started_at is null or p.started_at <= s.time_stamp)
left join pod_instance i on i.pod_name = p.pod_name and i.pod_namespace = p.pod_namespace
                        and i.instance = coalesce(nullif(p.pod_uid, ''), p.started_at::text, '')
where s.united_in is not null;

insert into unattributed_syscalls (pod_name, pod_namespace, is_ambiguous, syscalls, arches, sent_at, received_at)
select s.pod_name, btrim(s.pod_namespace), false, s.syscalls, array[s.arch], s.time_stamp, s.time_stamp
from pod_syscalls s
where s.united_in is null and s.syscalls <> '';
