-- What is known of a vulnerability itself, whichever payload told: as of the last pass, and what ingest has learnt since.
create table cve_fact (
  vuln_id         text collate "C" primary key,
  kev             boolean,
  kev_date_added  timestamp,
  epss            real,
  epss_percentile real
) with (fillfactor = 80);

-- Ingest only ever adds here, so that it waits for nobody. A row without values says: look at this one again. It stays until whoever
-- knew of no such row has surely ended: what was as high as the rest when it was written is not told.
create table cve_news (
  id              bigint generated always as identity primary key,
  vuln_id         text collate "C" not null,
  kev             boolean,
  kev_date_added  timestamp,
  epss            real,
  epss_percentile real,
  noted_at        timestamp not null default (now() at time zone 'utc')
);

create index cve_news_by_vuln on cve_news (vuln_id);
