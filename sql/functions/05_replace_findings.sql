-- Makes the findings of a payload those that were sent, and touches no row that stays as it is; then tells of facts about vulnerabilities
-- that are new, or that may have gone, and of other ids. The two lists are hashed: PostgreSQL takes an array for short, and sessions of ingest may not hash.
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
    select row(of_digest, of_source, r.severity, r.vuln_id, r.package_name, r.installed_version, r.package_type, r.package_purl,
               r.fixed_versions, r.score, r.cvss, r.title, r.primary_url, r.target, r.class, r.published_at, r.last_modified_at,
               r.file_paths, r.kev, r.kev_date_added, r.epss, r.epss_percentile, coalesce(r.aliases, '{}'), coalesce(r.omitted, 0)
              )::image_finding
    from json_populate_recordset(null::image_finding, rows) r);

  with gone as (
    delete from image_finding f
    where f.digest = of_digest and f.source = of_source
      and not exists (
        select from unnest(sent) s
        where s.vuln_id = f.vuln_id and s.package_name = f.package_name and s.installed_version = f.installed_version and s = f)
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
  perform learn_aliases(sent);
end
$$;
