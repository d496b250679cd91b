-- The vulnerabilities of images, each once, from all payloads that stand for the image. The next lists are the packages
-- with a list of files that is not cut; the last two those of which a container ran a file. `is_provable`: a container
-- that is watched and ran no file of the packages does not use them. Without nested loops, since the planner expects a
-- few rows of each list.
create or replace function cves_of_images(images text[], whole_images text[], whole_packages text[],
                                          used_images text[], used_packages text[])
returns table (image_digest text, vuln_id text, severity smallint, max_score real, is_fixable boolean, packages text[],
               sources text[], join_rank smallint, is_provable boolean, used text[])
language sql stable
set enable_hashjoin = on
set enable_nestloop = off
set work_mem = '32MB'
as $$
  with whole as materialized (
    select w.image_digest, w.package_name
    from unnest(whole_images, whole_packages) w(image_digest, package_name)),
  used as materialized (
    select u.image_digest, u.package_name from unnest(used_images, used_packages) u(image_digest, package_name)),
  findings as materialized (
    select i.image_digest, f.vuln_id, f.package_name, f.source, f.severity, f.score, e.join_rank,
           f.fixed_versions <> '{}' as is_fixable,
           bool_and(package_coverage(f.package_type, f.class, f.package_purl) <> 'interpreted')
             over (partition by i.image_digest, f.vuln_id, f.package_name, f.installed_version) as is_observable
    from unnest(images) i(image_digest)
    cross join lateral (
      select e.* from answering_reports(i.image_digest, 'vulnerabilities') e where e.join_rank < 4 offset 0) e
    cross join lateral (
      select f.* from image_finding f where f.digest = e.digest and f.source = e.source offset 0) f)
  select f.image_digest, f.vuln_id, min(f.severity), max(f.score), bool_or(f.is_fixable),
         (array_agg(distinct f.package_name order by f.package_name))[:1000],
         array_agg(distinct f.source order by f.source), max(f.join_rank),
         bool_and(f.is_observable and w.package_name is not null),
         coalesce((array_agg(distinct u.package_name order by u.package_name)
                     filter (where u.package_name is not null))[:1000], '{}')
  from findings f
  left join whole w on w.image_digest = f.image_digest and w.package_name = f.package_name
  left join used u on u.image_digest = f.image_digest and u.package_name = f.package_name
  group by f.image_digest, f.vuln_id
$$;
