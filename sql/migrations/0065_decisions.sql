-- Decisions about vulnerabilities with their history, and the VEX documents that some of them come from
-- (docs/contract.md#decisions).

-- `name` is the id of the vulnerability in upper case. `scope_rank` is 0 for a workload, 1 for an image or a
-- repository, 2 for a namespace and 3 for the cluster: the most specific first. A decision without `ended_at` holds
-- until the end of `holds_until`. `product` is what a statement of a document names, as it was sent.
create table vuln_decision (
  id                 bigint generated always as identity primary key,
  vuln_id            text collate "C" not null,
  name               text collate "C" not null,
  scope_rank         smallint not null check (scope_rank between 0 and 3),
  pod_namespace      text collate "C",
  workload_kind      text collate "C",
  workload_name      text collate "C",
  image_digest       text collate "C",
  repository         text collate "C",
  package_name       text collate "C",
  package_purl       text collate "C",
  decision           text collate "C" not null check (
    decision in ('accepted', 'not_affected', 'will_not_fix', 'affected', 'fixed', 'under_investigation')),
  justification      text collate "C",
  holds_until        date,
  decided_by         text not null,
  reason             text not null,
  decided_at         timestamp not null,
  document_id        text collate "C",
  document_version   bigint,
  statement_position bigint,
  product            json,
  ended_at           timestamp,
  ended_how          text collate "C" check (ended_how in ('replaced', 'withdrawn', 'expired')),
  ended_by           text,
  ended_reason       text
);

create index vuln_decision_holding on vuln_decision (name) where ended_at is null;
create index vuln_decision_of_image on vuln_decision (image_digest)
  where ended_at is null and image_digest is not null;
create index vuln_decision_of_repository on vuln_decision (repository)
  where ended_at is null and repository is not null;
create index vuln_decision_of_document on vuln_decision (document_id)
  where ended_at is null and document_id is not null;
create index vuln_decision_expiring on vuln_decision (holds_until) where ended_at is null and holds_until is not null;
create index vuln_decision_history on vuln_decision (name, id);
create index vuln_decision_ended on vuln_decision (ended_at) where ended_at is not null;

-- The newest version of each document that was posted.
create table vex_document (
  document_id  text collate "C" primary key,
  format       text collate "C" not null check (format in ('openvex', 'cyclonedx')),
  version      bigint not null,
  author       text not null,
  issued_at    timestamp not null,
  content_hash text collate "C" not null,
  received_at  timestamp not null
);

create index vex_document_oldest on vex_document (received_at);

-- Its statements without their products, as they were sent.
create table vex_statement (
  document_id text collate "C" not null,
  position    bigint not null,
  content     json not null,
  primary key (document_id, position)
);

-- Workloads in which all findings of a vulnerability are decided, in a namespace, or in the cluster where
-- `scope_namespace` is empty. Written with each decision, and by the job when it counts the vulnerability.
create table cve_decided (
  vuln_id         text collate "C" not null,
  scope_namespace text collate "C" not null,
  workloads       bigint not null,
  primary key (vuln_id, scope_namespace)
) with (fillfactor = 80);
