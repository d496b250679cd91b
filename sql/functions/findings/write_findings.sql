-- Replaces the findings of a payload, each under its canonical id, without touching rows that stay the same; then
-- records new facts, aliases, and facts that may have gone. Findings that coincide under the canonical id are merged,
-- like repeats within a payload. The caller holds the lock of the payload. Hash joins are on because PostgreSQL
-- underestimates the length of arrays and sessions of ingest disable them.
create or replace function write_findings(of_digest text, of_source text, posted image_finding[]) returns void
language plpgsql
set enable_hashjoin = on
set enable_nestloop = off
as $$
declare
  max_aliases        constant integer := 32;
  max_fixed_versions constant integer := 256;
  max_file_paths     constant integer := 1024;
  merged     image_finding[] := posted;
  ids        jsonb;
  parts      finding_sent[]  := '{}';
  is_renamed boolean;
  uncertain  text[];
begin
  ids := (select jsonb_object_agg(c.id, c.vuln_id) from canonical_ids(posted) c);
  if ids is not null then
    parts := array(
      select row(of_digest, of_source, p.stored_id, p.package_name, p.installed_version,
                 case when may_be_renamed(p.vuln_id, p.aliases) then upper(p.vuln_id) end, p.sent)::finding_sent
      from (select n.*, bool_or(n.stored_id <> n.vuln_id) over (partition by n.stored_id, n.package_name,
                                                                n.installed_version) as is_renamed
            from (select t.vuln_id, t.package_name, t.installed_version, t.aliases, to_jsonb(t) as sent,
                         case when may_be_renamed(t.vuln_id, t.aliases) then coalesce(ids ->> t.vuln_id, t.vuln_id)
                              else t.vuln_id end collate "C" as stored_id
                  from unnest(posted) t) n) p
      where p.is_renamed);

    merged := array(
      select t::image_finding
      from unnest(posted) t
      where not exists (
        select from unnest(parts) p
        where p.sent ->> 'vuln_id' = t.vuln_id and p.package_name = t.package_name
              and p.installed_version = t.installed_version)
    ) || array(
      select row(of_digest, of_source, u.severity, u.vuln_id, u.package_name, u.installed_version, u.package_type,
                 u.package_purl,
                 u.fixed_versions[:max_fixed_versions], u.score, u.cvss, u.title, u.primary_url, u.target, u.class,
                 u.published_at,
                 u.last_modified_at, u.file_paths[:max_file_paths], u.kev, u.kev_date_added, u.epss, u.epss_percentile,
                 u.aliases[:max_aliases],
                 u.omitted + greatest(cardinality(u.fixed_versions) - max_fixed_versions, 0)
                           + greatest(cardinality(u.file_paths) - max_file_paths, 0)
                           + greatest(cardinality(u.aliases) - max_aliases, 0), u.status)::image_finding
      from (
        select p.vuln_id, p.package_name, p.installed_version, min(s.severity) as severity,
               first_not_null(s.package_type order by p.nth) as package_type,
               -- One of two packages would stand for both.
               case when min(s.package_purl) = max(s.package_purl) then min(s.package_purl) end as package_purl,
               distinct_texts(jsonb_agg(to_jsonb(s.fixed_versions))) as fixed_versions, max(s.score) as score,
               merged_keys(s.cvss order by p.nth) as cvss, first_not_null(s.title order by p.nth) as title,
               first_not_null(s.primary_url order by p.nth) as primary_url,
               first_not_null(s.target order by p.nth) as target,
               first_not_null(s.class order by p.nth) as class,
               first_not_null(s.published_at order by p.nth) as published_at,
               first_not_null(s.last_modified_at order by p.nth) as last_modified_at,
               distinct_texts(jsonb_agg(to_jsonb(s.file_paths))) as file_paths, bool_or(s.kev) as kev,
               min(s.kev_date_added) as kev_date_added, max(s.epss) as epss, max(s.epss_percentile) as epss_percentile,
               distinct_texts(jsonb_agg(to_jsonb(s.aliases))) as aliases, sum(s.omitted)::bigint as omitted,
               min(s.status) as status
        from (select p.*, row_number() over (order by p.sent ->> 'vuln_id' <> p.vuln_id, p.sent ->> 'vuln_id') as nth
              from unnest(parts) p) p
        cross join lateral jsonb_populate_record(null::image_finding, p.sent) s
        group by p.vuln_id, p.package_name, p.installed_version) u);
  end if;

  delete from finding_sent s where s.digest = of_digest and s.source = of_source;
  is_renamed := found or parts <> '{}';
  insert into finding_sent select p.* from unnest(parts) p;

  with gone as (
    delete from image_finding f
    where f.digest = of_digest and f.source = of_source
      and not exists (
        select from unnest(merged) s
        where s.vuln_id = f.vuln_id and s.package_name = f.package_name and s.installed_version = f.installed_version
              and s = f)
    returning f.vuln_id, f.kev, f.kev_date_added, f.epss, f.epss_percentile)
  select array_agg(distinct l.vuln_id) into uncertain
  from (select g.vuln_id, g.kev, g.kev_date_added, g.epss, g.epss_percentile from gone g
        where num_nonnulls(g.kev, g.kev_date_added, g.epss, g.epss_percentile) > 0
        except
        select s.vuln_id, s.kev, s.kev_date_added, s.epss, s.epss_percentile from unnest(merged) s) l;
  perform request_fact_refresh(uncertain);

  insert into image_finding
  select s.* from unnest(merged) s
  order by s.severity, s.vuln_id, s.package_name, s.installed_version
  on conflict do nothing;

  perform record_facts(merged);
  perform record_aliases(merged);
  if is_renamed then
    perform request_image_refresh(of_digest, of_source);
  end if;
end
$$;
