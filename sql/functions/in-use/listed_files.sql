-- The files that reports and SBOMs of images list for packages. `is_cut`: more files may belong to the package, since
-- 16 are taken of each entry. Databases of package managers and documentation are not among them: scanners name these
-- as the place where they found a package.
create or replace function listed_files(images text[])
returns table (image_digest text, package_name text, path text, is_cut boolean)
language sql stable
as $$
  select l.*
  from (
    select i.image_digest, c.name collate "C", normal_path(f.path) as path, cardinality(c.file_paths) >= 16
    from unnest(images) i(image_digest)
    cross join lateral (select e.* from answering_reports(i.image_digest, 'sbom') e where e.join_rank < 4 offset 0) p
    cross join lateral (
      select c.name, c.file_paths
      from image_component c
      where c.digest = p.digest and c.source = p.source and c.file_paths <> '{}' offset 0) c
    cross join unnest(c.file_paths) f(path)
    union all
    select i.image_digest, r.package_name, normal_path(f.path), cardinality(r.file_paths) >= 16 or r.omitted > 0
    from unnest(images) i(image_digest)
    cross join lateral (
      select e.* from answering_reports(i.image_digest, 'vulnerabilities') e where e.join_rank < 4 offset 0) p
    cross join lateral (
      select r.package_name, r.file_paths, r.omitted
      from image_finding r
      where r.digest = p.digest and r.source = p.source and r.file_paths <> '{}' offset 0) r
    cross join unnest(r.file_paths) f(path)) l
  where l.path !~ '^(/usr)?/lib/(apk|opkg|sysimage)/|^/var/lib/(dpkg|rpm|pacman|apk|opkg)/|^/usr/share/(doc|licenses)/'
$$;
