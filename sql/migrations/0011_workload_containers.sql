-- A row says that a container ran an image, for all pods of a workload together. The key begins with the workload,
-- because reads look rows up by it.
create table workload_container (
  cluster_id       text collate "C" not null,
  pod_namespace    text collate "C" not null,
  workload_kind    text collate "C" not null,
  workload_name    text collate "C" not null,
  container_name   text collate "C" not null,
  image_digest     text collate "C" not null,
  container_kind   text collate "C" not null check (container_kind in ('init', 'regular', 'ephemeral')),
  image_ref        text not null,
  security_context jsonb not null,
  pod_security     jsonb not null,
  last_pod_name    text collate "C",
  state            text collate "C" check (state in ('running', 'waiting', 'terminated')),
  state_reason     text,
  ref_seen_at      timestamp,
  first_seen       timestamp not null,
  last_seen        timestamp not null,
  primary key (pod_namespace, workload_kind, workload_name, container_name, image_digest, cluster_id)
) with (fillfactor = 80);

-- These indexes include the workload name, because look-ups may also filter by it and some images run in every
-- workload.
create index workload_container_by_image on workload_container (image_digest, pod_namespace, workload_name);
create index workload_container_by_namespace on workload_container (pod_namespace, image_digest, workload_name);
create index workload_container_by_pod on workload_container (last_pod_name, container_name)
  where last_pod_name is not null;
create index workload_container_oldest on workload_container (last_seen);
