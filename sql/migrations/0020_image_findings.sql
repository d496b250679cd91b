-- Each vulnerability, package and version of a payload has one row. `severity` is 0 for CRITICAL, 1 for HIGH, 2 for
-- MEDIUM, 3 for LOW, 4 for NONE and 5 for UNKNOWN, so that the key has the order of lists.
create table image_finding (
  digest            text collate "C" not null,
  source            text collate "C" not null,
  severity          smallint not null check (severity between 0 and 5),
  vuln_id           text collate "C" not null,
  package_name      text collate "C" not null,
  installed_version text collate "C" not null,
  package_type      text,
  package_purl      text,
  fixed_versions    text[] not null,
  score             real,
  cvss              jsonb not null,
  title             text,
  primary_url       text,
  target            text,
  class             text,
  published_at      timestamp,
  last_modified_at  timestamp,
  file_paths        text[] not null,
  kev               boolean,
  kev_date_added    timestamp,
  epss              real,
  epss_percentile   real,
  primary key (digest, source, severity, vuln_id, package_name, installed_version)
);

-- Requests may name a vulnerability in any case, so the index has upper case.
create index image_finding_by_cve on image_finding (upper(vuln_id), digest, source);
create index image_finding_with_facts on image_finding (vuln_id)
  where kev is not null or kev_date_added is not null or epss is not null or epss_percentile is not null;
