-- These tables have the summary of vulnerabilities over the images of workloads, and the data that it is computed from.
-- Only the job writes them, but ingest may clear `summary_image.payloads`, so that the job reads an image again.
-- `payloads` identifies the payloads that the last pass found for an image.
create table summary_image (
  image_digest text collate "C" primary key,
  payloads     text not null
);

create table summary_workload (
  image_digest  text collate "C" not null,
  pod_namespace text collate "C" not null,
  workload_kind text collate "C" not null,
  workload_name text collate "C" not null,
  cluster_id    text collate "C" not null,
  is_running    boolean not null,
  primary key (image_digest, pod_namespace, workload_kind, workload_name, cluster_id)
) with (fillfactor = 80);

-- `join_rank` is the weakest join among the payloads that report the vulnerability for the image.
create table image_cve (
  vuln_id      text collate "C" not null,
  image_digest text collate "C" not null,
  severity     smallint not null,
  max_score    real,
  is_fixable   boolean not null,
  packages     text[] not null,
  sources      text[] not null,
  join_rank    smallint not null,
  primary key (vuln_id, image_digest)
) with (fillfactor = 80);

create index image_cve_by_image on image_cve (image_digest);

-- The job has to count these vulnerabilities again.
create table summary_news (
  vuln_id text collate "C" primary key
);

-- A row has the score, the packages and the sources of a vulnerability in the whole cluster.
create table cve_detail (
  vuln_id   text collate "C" primary key,
  max_score real,
  packages  text[] not null,
  sources   text[] not null
) with (fillfactor = 80);

-- A row counts a vulnerability in one namespace, or in the cluster where `scope_namespace` is empty. Severity and fixes
-- are those of the cluster in every row.
create table cve_summary (
  vuln_id           text collate "C" not null,
  scope_namespace   text collate "C" not null,
  severity          smallint not null,
  is_fixable        boolean not null,
  images            bigint not null,
  workloads         bigint not null,
  running_workloads bigint not null,
  namespaces        bigint not null,
  join_rank         smallint not null,
  primary key (vuln_id, scope_namespace)
) with (fillfactor = 80);

-- A list merges at most four ranges of this index, one for each pair of the two booleans, whatever its filters are.
create index cve_summary_in_order
  on cve_summary (scope_namespace, is_fixable, (running_workloads > 0), severity, vuln_id);

create table cve_summary_state (
  is_only      boolean primary key default true check (is_only),
  refreshed_at timestamp not null
) with (fillfactor = 50);
