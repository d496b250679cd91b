-- Search and `GET /components` find the payloads that have a package (docs/contract.md#search). Only the job writes the
-- tables: an index on `image_component` would slow the ingest of SBOMs down.

-- Each package once: its number, its name, the artifact in a name `group:artifact`, and its package URL without version
-- and qualifiers, in lower case (A to Z); empty without a package URL. Packages that are equal in these may have
-- several numbers.
create table package_entry (
  id       bigint primary key,
  name     text collate "C" not null,
  artifact text collate "C",
  purl     text collate "C" not null
);

create index package_entry_by_name on package_entry (name);
create index package_entry_by_artifact on package_entry (artifact) where artifact is not null;
create index package_entry_by_purl on package_entry (purl) where purl <> '';

-- The packages of a payload with this content. They answer for it only while `image_report.packages_hash` is its
-- `content_hash`.
create table payload_packages (
  digest       text collate "C" not null,
  source       text collate "C" not null,
  kind         text collate "C" not null,
  content_hash text collate "C" not null,
  packages     bigint[] not null,
  primary key (digest, source, kind)
);

create index payload_packages_by_package on payload_packages using gin (packages);

-- The content of which `payload_packages` has the packages. Null in all that is stored: the job reads them next.
alter table image_report add column packages_hash text collate "C";

-- Payloads that the job has not read. The table has a row for each payload, so it is short.
-- squawk-ignore require-concurrent-index-creation
create index image_report_unread on image_report (digest, source, kind)
  where packages_hash is distinct from content_hash;
