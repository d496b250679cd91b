-- Replaces the findings of a payload with the posted ones.
create or replace function replace_findings(of_digest text, of_source text, rows json) returns void
language plpgsql
as $$
begin
  perform write_findings(of_digest, of_source, array(
    select row(of_digest, of_source, r.severity, r.vuln_id, r.package_name, r.installed_version, r.package_type,
               r.package_purl,
               r.fixed_versions, r.score, r.cvss, r.title, r.primary_url, r.target, r.class, r.published_at,
               r.last_modified_at,
               r.file_paths, r.kev, r.kev_date_added, r.epss, r.epss_percentile, coalesce(r.aliases, '{}'),
               coalesce(r.omitted, 0), r.status
              )::image_finding
    from json_populate_recordset(null::image_finding, rows) r));
end
$$;
