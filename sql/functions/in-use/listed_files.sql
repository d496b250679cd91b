-- The files that reports and SBOMs of images list for packages. `is_cut`: more files may belong to the package, since
-- 16 are taken of each entry. Databases of package managers and documentation are not among them: scanners name these
-- as the place where they found a package.
create or replace function listed_files(images text[])
returns table (image_digest text, package_name text, path text, is_cut boolean)
language sql stable
as $$
  with payloads as materialized (
    select i.image_digest, k.kind, e.digest, e.source
    from unnest(images) i(image_digest)
    cross join (values ('vulnerabilities'), ('sbom')) k(kind)
    cross join lateral answering_reports(i.image_digest, k.kind) e
    where e.join_rank < 4)
  select l.*
  from (
    select p.image_digest, c.name collate "C", normal_path(f.path) as path, cardinality(c.file_paths) >= 16
    from payloads p
    join image_component c on c.digest = p.digest and c.source = p.source
    cross join unnest(c.file_paths) f(path)
    where p.kind = 'sbom'
    union all
    select p.image_digest, r.package_name, normal_path(f.path), cardinality(r.file_paths) >= 16 or r.omitted > 0
    from payloads p
    join image_finding r on r.digest = p.digest and r.source = p.source
    cross join unnest(r.file_paths) f(path)
    where p.kind = 'vulnerabilities') l
  where l.path !~ '^(/usr)?/lib/(apk|opkg|sysimage)/|^/var/lib/(dpkg|rpm|pacman|apk|opkg)/|^/usr/share/(doc|licenses)/'
$$;
