-- Whether packages of an image are in use (docs/contract.md#in-use), and how urgent a vulnerability is for that
-- (docs/contract.md#tiers). Only the job writes these tables, but for `use_news`.

-- A package of an image of which a container executed a file, or loaded one if it executed none.
create table package_use (
  image_digest   text collate "C" not null,
  package_name   text collate "C" not null,
  pod_namespace  text collate "C" not null,
  workload_kind  text collate "C" not null,
  workload_name  text collate "C" not null,
  container_name text collate "C" not null,
  cluster_id     text collate "C" not null,
  is_executed    boolean not null,
  primary key (image_digest, package_name, pod_namespace, workload_kind, workload_name, container_name, cluster_id)
) with (fillfactor = 90);

-- The containers of workloads as of the last pass. A container without `reason` was watched for the whole window.
create table container_use (
  image_digest   text collate "C" not null,
  pod_namespace  text collate "C" not null,
  workload_kind  text collate "C" not null,
  workload_name  text collate "C" not null,
  container_name text collate "C" not null,
  cluster_id     text collate "C" not null,
  reason         text collate "C",
  observed_since timestamp,
  exposure       text collate "C" check (exposure in ('exposed', 'node_only', 'internal')),
  primary key (image_digest, pod_namespace, workload_kind, workload_name, container_name, cluster_id)
) with (fillfactor = 80);

create index container_use_by_workload
  on container_use (pod_namespace, workload_kind, workload_name, container_name, image_digest, cluster_id);

-- Images of which a file was seen for the first time or is no longer known: the job has to link their files again; with
-- `is_judged`, images of which a container is judged otherwise: it has to count their vulnerabilities again.
create table use_news (
  id           bigint generated always as identity primary key,
  image_digest text collate "C" not null,
  is_judged    boolean not null
);

create index use_news_by_image on use_news (image_digest);

-- The rule of tiers, as the settings have it: the EPSS from which on a vulnerability is likely to be exploited, and
-- whether a workload of unknown exposure counts as exposed.
create table tier_rule (
  is_only            boolean primary key default true check (is_only),
  epss               double precision not null,
  unknown_is_exposed boolean not null
);

insert into tier_rule (epss, unknown_is_exposed) values (0.1, true);

-- `is_provable`: a container that is watched and ran no file of these packages does not use them. `used_packages` are
-- those of which some container ran a file.
alter table image_cve add column is_provable boolean not null default false;
alter table image_cve add column used_packages text[] not null default '{}';

-- The packages whose files are listed: whole, or cut.
alter table summary_image add column whole_packages text[] not null default '{}';
alter table summary_image add column cut_packages text[] not null default '{}';

-- Positions of tiers in the list: 0 P0, 1 not counted yet, 2 P1, 3 P2, 4 Background. Workloads in none of the counts of
-- states are unknown.
alter table cve_summary add column tier smallint not null default 1;
alter table cve_summary add column executed_workloads bigint not null default 0;
alter table cve_summary add column loaded_workloads bigint not null default 0;
alter table cve_summary add column not_observed_workloads bigint not null default 0;
alter table cve_summary add column exposed_workloads bigint not null default 0;

-- Until when the last pass that ended whole may answer for how containers are watched. Null where a broker of the
-- version before made it.
alter table cve_summary_state add column judged_until timestamp;

-- Only the job writes this table, and it may wait while the index is built. Brokers of the version before use the old
-- index until they are gone.
-- squawk-ignore require-concurrent-index-creation
create index cve_summary_by_tier
  on cve_summary (scope_namespace, is_fixable, (running_workloads > 0), tier, severity, vuln_id);
-- squawk-ignore require-concurrent-index-deletion
drop index cve_summary_in_order;

-- The next pass reads all images and counts all vulnerabilities again.
update summary_image set payloads = '';
insert into summary_news (vuln_id)
select c.vuln_id from cve_summary c where c.scope_namespace = '' on conflict do nothing;
