-- When each syscall of a workload was first and last seen and in which images, and since when a set that was reset is observed.
alter table workload_syscalls add column reset_at timestamp, add column reset_id uuid;

-- Apart from the sets, which are read far more often: `names` are sorted by bytes, the next three say the same of each. A time is null where it was
-- not kept when the name was seen. A bit of `images` is a place in `image_digests`.
create table workload_syscalls_seen (
  pod_namespace text collate "C",
  workload_kind text collate "C",
  workload_name text collate "C",
  names         text[] not null,
  first_seen    timestamp[] not null,
  last_seen     timestamp[] not null,
  images        bigint[] not null,
  image_digests text[] not null,
  -- When each of them was last seen.
  image_seen    timestamp[] not null,
  primary key (pod_namespace, workload_kind, workload_name)
) with (fillfactor = 80);
