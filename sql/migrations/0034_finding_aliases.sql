-- Findings get `aliases`, the other ids of the vulnerability, and `omitted`, the number of list entries that were cut.
alter table image_finding
  add column aliases text[] not null default '{}',
  add column omitted bigint not null default 0;

-- Findings name these aliases. A row is deleted when no finding has named the alias for two days.
create table cve_alias (
  vuln_id text collate "C" not null,
  alias   text collate "C" not null,
  told_at timestamp not null default (now() at time zone 'utc'),
  primary key (vuln_id, alias)
) with (fillfactor = 80);

-- Requests may name either id in any case, so the indexes have upper case.
create index cve_alias_by_alias on cve_alias (upper(alias));
create index cve_alias_by_vuln on cve_alias (upper(vuln_id));
create index cve_alias_by_time on cve_alias (told_at);

-- The function that stores findings inserts whole rows, which now have two more columns. That of the previous release
-- would fail until the functions of this release are applied, so this one replaces it until then.
create or replace function replace_findings(of_digest text, of_source text, rows json) returns void
language plpgsql
set enable_hashjoin = on
set enable_nestloop = off
as $$
declare
  sent     image_finding[];
  doubtful text[];
begin
  sent := array(
    select row(of_digest, of_source, r.severity, r.vuln_id, r.package_name, r.installed_version, r.package_type,
               r.package_purl, r.fixed_versions, r.score, r.cvss, r.title, r.primary_url, r.target, r.class,
               r.published_at, r.last_modified_at, r.file_paths, r.kev, r.kev_date_added, r.epss, r.epss_percentile,
               '{}', 0)::image_finding
    from json_populate_recordset(null::image_finding, rows) r);

  with gone as (
    delete from image_finding f
    where f.digest = of_digest and f.source = of_source
      and not exists (
        select from unnest(sent) s
        where s.vuln_id = f.vuln_id and s.package_name = f.package_name and s.installed_version = f.installed_version
          and s = f)
    returning f.vuln_id, f.kev, f.kev_date_added, f.epss, f.epss_percentile)
  select array_agg(distinct l.vuln_id) into doubtful
  from (select g.vuln_id, g.kev, g.kev_date_added, g.epss, g.epss_percentile from gone g
        where num_nonnulls(g.kev, g.kev_date_added, g.epss, g.epss_percentile) > 0
        except
        select s.vuln_id, s.kev, s.kev_date_added, s.epss, s.epss_percentile from unnest(sent) s) l;
  perform doubt_facts(doubtful);

  insert into image_finding
  select s.* from unnest(sent) s
  order by s.severity, s.vuln_id, s.package_name, s.installed_version
  on conflict do nothing;

  perform learn_facts(sent);
end
$$;
