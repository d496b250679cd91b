-- `reset_at` is the time of the last reset of an observed set. `reset_id` is its id, by which a retry is recognised.
alter table workload_syscalls add column reset_at timestamp, add column reset_id uuid;

-- A row says when each syscall of a workload was first and last seen, and in which images. It is apart from the set,
-- which is read far more often. `names` are sorted by bytes, and the next three arrays are parallel to it. A time is
-- null for a name that was seen before times were stored. Each bit of `images` stands for a position in
-- `image_digests`.
create table workload_syscalls_seen (
  pod_namespace text collate "C",
  workload_kind text collate "C",
  workload_name text collate "C",
  names         text[] not null,
  first_seen    timestamp[] not null,
  last_seen     timestamp[] not null,
  images        bigint[] not null,
  image_digests text[] not null,
  -- This is when each of these images was last seen.
  image_seen    timestamp[] not null,
  primary key (pod_namespace, workload_kind, workload_name)
) with (fillfactor = 80);
