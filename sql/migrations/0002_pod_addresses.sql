-- This table has every address of every pod row, for look-ups by address. A GIN index on pod.pod_ips would stall under
-- frequent writes.
create table pod_address (
  ip       text collate "C" not null,
  pod_name text collate "C" not null,
  primary key (ip, pod_name)
);

create index pod_address_by_pod on pod_address (pod_name);
