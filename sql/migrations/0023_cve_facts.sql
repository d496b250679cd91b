-- `cve_fact` has the KEV and EPSS values of a vulnerability over all payloads as of the last pass of the job.
-- `cve_news` has the values that ingest has recorded since.
create table cve_fact (
  vuln_id         text collate "C" primary key,
  kev             boolean,
  kev_date_added  timestamp,
  epss            real,
  epss_percentile real
) with (fillfactor = 80);

-- Ingest only inserts here, so that it waits for no other session. A row without values requests that the job computes
-- the values again. The job deletes it only after two minutes, so that every transaction that could not see it has
-- ended: such a transaction records no value that was already known, and the job may not have seen its findings.
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
