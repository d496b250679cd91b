-- The summary stores the packages of a vulnerability beyond the first five. The indexes serve filters by package, KEV
-- and EPSS.
create table cve_package (
  vuln_id      text collate "C" not null,
  package_name text collate "C" not null,
  primary key (vuln_id, package_name)
);

create index cve_package_by_name on cve_package (package_name, vuln_id);

-- It is null for a vulnerability that was counted before this migration. `packages` then has all packages if these are
-- fewer than five.
alter table cve_detail add column package_count bigint;

-- Only the job writes these two tables, and it may wait while the indexes are built.
-- squawk-ignore require-concurrent-index-creation
create index cve_detail_by_name on cve_detail (upper(vuln_id));
-- squawk-ignore require-concurrent-index-creation
create index cve_fact_by_kev on cve_fact (kev, vuln_id) where kev is not null;
-- squawk-ignore require-concurrent-index-creation
create index cve_fact_by_epss on cve_fact (epss) where epss is not null;

-- A vulnerability with five stored packages may have more. The next pass reads its images and counts it again.
insert into cve_package (vuln_id, package_name)
select d.vuln_id, p.name from cve_detail d cross join unnest(d.packages) p(name)
on conflict do nothing;

update summary_image s set payloads = ''
from (select distinct c.image_digest from image_cve c where cardinality(c.packages) >= 5) c
where s.image_digest = c.image_digest;

insert into summary_news (vuln_id)
select d.vuln_id from cve_detail d where cardinality(d.packages) >= 5
on conflict do nothing;
