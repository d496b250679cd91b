-- `runtime_capability` counts the checks of Linux capabilities in the containers of a workload, and whether the kernel
-- granted them. Posts rewrite rows every hour. No index has a time, so that PostgreSQL leaves the indexes alone (HOT
-- updates), and old rows are found by the day of their last report. `last_post` is the id of the post that wrote a row
-- last: counts are added, and a statement that is repeated after a lost answer must not add them again.
create table runtime_capability (
  cluster_id        text collate "C" not null,
  pod_namespace     text collate "C" not null,
  workload_kind     text collate "C" not null,
  workload_name     text collate "C" not null,
  container_name    text collate "C" not null,
  image_digest      text collate "C" not null,
  capability        text collate "C" not null,
  granted           boolean not null,
  probed            boolean not null,
  count             bigint not null check (count >= 0),
  last_pod_name     text collate "C",
  first_seen        timestamp not null,
  last_seen         timestamp not null,
  last_reported     timestamp not null,
  last_reported_day date not null generated always as (last_reported::date) stored,
  last_post         uuid not null,
  primary key (pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted, probed,
               cluster_id)
) with (fillfactor = 80);

create index runtime_capability_oldest on runtime_capability (last_reported_day);

-- Whether the agent counts capabilities of the container, and at which function of the kernel. `cap_since` is since
-- when both are unchanged. All are null where only brokers of the release before have heard of the container.
alter table runtime_coverage
  add column cap_probe boolean,
  add column cap_hook text collate "C",
  add column cap_since timestamp;
