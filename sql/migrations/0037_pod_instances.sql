-- Pods as they come and go: a name may be that of several pods, one after the other or in two namespaces at once, and the row of a pod has only
-- the last of them. Syscalls belong to the one that sent them, with the workload and the capture level that it had then.
create table pod_instance (
  pod_name      text collate "C",
  pod_namespace text collate "C",
  -- The uid, else the start, else nothing; `?` where nothing is left of it but its syscalls.
  instance      text collate "C",
  pod_uid       text collate "C",
  started_at    timestamp,
  workload_kind text collate "C",
  workload_name text collate "C",
  capture_level text,
  -- The level before `level_since`.
  earlier_level text,
  level_since   timestamp not null,
  -- It had another workload before.
  is_moved      boolean not null default false,
  image_digests text[] not null default '{}',
  -- By the clock of the agent, then by ours. The last ones move every few minutes.
  first_post    timestamp not null,
  last_post     timestamp not null,
  first_seen    timestamp not null,
  last_seen     timestamp not null,
  primary key (pod_name, pod_namespace, instance)
) with (fillfactor = 70);

-- To which time the instance of this row was written last.
alter table pod add column instance_post timestamp;

-- What each of them sent to the set of its workload.
create table syscall_contribution (
  pod_name      text collate "C",
  pod_namespace text collate "C",
  instance      text collate "C",
  workload_kind text collate "C",
  workload_name text collate "C",
  syscalls      text not null,
  arches        text[] not null,
  -- The level at `level_at`, when it last sent something.
  capture_level text,
  level_at      timestamp not null,
  -- It may have sent something that is not in the set.
  is_doubtful   boolean not null default false,
  -- What it sent up to here is not in the set: there was a reset, or it was of another workload.
  cut_at        timestamp,
  -- To which time the names of the set were last said to be seen.
  seen_until    timestamp not null,
  primary key (pod_name, pod_namespace, instance, workload_kind, workload_name)
) with (fillfactor = 70);

create index syscall_contribution_by_workload on syscall_contribution (pod_namespace, workload_kind, workload_name);

-- What nobody is known to have sent: no pod of the name was posted lately, it has no workload yet, or pods of two namespaces have the name.
create table unattributed_syscalls (
  pod_name      text collate "C",
  -- As it was sent; empty where it was not.
  pod_namespace text collate "C",
  is_ambiguous  boolean,
  syscalls      text not null,
  arches        text[] not null,
  -- The newest of it by the clock of the agent, the first of it by ours.
  sent_at       timestamp not null,
  received_at   timestamp not null,
  primary key (pod_name, pod_namespace, is_ambiguous)
) with (fillfactor = 70);

insert into pod_instance (pod_name, pod_namespace, instance, pod_uid, started_at, workload_kind, workload_name, capture_level, earlier_level,
                          level_since, first_post, last_post, first_seen, last_seen)
select p.pod_name, p.pod_namespace, coalesce(nullif(p.pod_uid, ''), p.started_at::text, ''), nullif(p.pod_uid, ''), p.started_at,
       p.workload_kind, p.workload_name, p.capture_level, p.capture_level,
       p.time_stamp, p.time_stamp, p.time_stamp, p.time_stamp, p.time_stamp
from pod p
where btrim(p.pod_namespace) <> '';

-- Syscalls of a pod whose row is gone, or is that of a later pod: the level is not known any more.
insert into pod_instance (pod_name, pod_namespace, instance, workload_kind, workload_name, level_since, first_post, last_post, first_seen, last_seen)
select s.pod_name, s.united_in::json ->> 0, '?', s.united_in::json ->> 1, s.united_in::json ->> 2,
       s.time_stamp, s.time_stamp, s.time_stamp, s.time_stamp, s.time_stamp
from pod_syscalls s
left join pod p on p.pod_name = s.pod_name and p.pod_namespace = s.united_in::json ->> 0
               and p.workload_kind = s.united_in::json ->> 1 and p.workload_name = s.united_in::json ->> 2
               and (p.started_at is null or p.started_at <= s.time_stamp)
where s.united_in is not null and p.pod_name is null;

insert into syscall_contribution (pod_name, pod_namespace, instance, workload_kind, workload_name, syscalls, arches, capture_level, level_at,
                                  seen_until)
select s.pod_name, s.united_in::json ->> 0, coalesce(i.instance, '?'), s.united_in::json ->> 1, s.united_in::json ->> 2,
       s.syscalls, case when s.syscalls = '' then '{}' else array[s.arch] end, i.capture_level, s.time_stamp, s.time_stamp
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
